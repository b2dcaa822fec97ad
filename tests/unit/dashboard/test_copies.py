"""Texts that are copied from an issue's page."""

from msgspec.structs import replace

from dashboard.view.copies import as_markdown, as_sql
from dashboard.view.event_sections import read
from tests.unit.dashboard.sample import NASTY, hostile, showcase
from tests.unit.dashboard.test_change_notice import ISSUE

AT = 1_760_000_000_000


def test_markdown_has_the_title_the_address_and_the_failing_line() -> None:
    text = as_markdown(
        replace(ISSUE, first_release="shop@1.0.0+1"), read(showcase(AT), "sdk/1"), "https://svc/issues/1"
    )
    assert text.startswith("### `E: m`\n\nhttps://svc/issues/1 · open\n")
    assert "first seen 2026-01-01T00:00:00.000Z in `shop@1.0.0+1`" in text
    assert "  Checkout.pay (src/checkout.ts:214:42)" in text
    assert "  >   214       const receipt = await this.gateway.request(charge(card, total));" in text
    assert "invokeGuardedCallback" not in text
    assert text.count("```") == 4


def test_hostile_text_stays_in_its_block() -> None:
    text = as_markdown(
        replace(ISSUE, message=f"```\n# {NASTY}"), read(hostile(AT), "sdk/1"), "https://svc/issues/1"
    )
    assert text.count("```") == 2
    assert [line for line in text.splitlines() if line.startswith("#")] == [text.splitlines()[0]]


def test_text_of_events_outside_a_block_is_code() -> None:
    hostile_text = "`<b>x</b> *bold* [link](https://evil.example)"
    issue = replace(ISSUE, message=hostile_text, environments=[hostile_text], first_release=hostile_text)
    shown = hostile_text.replace("`", "'")
    assert as_markdown(issue, None, "https://svc/issues/1").count(f"{shown}`") == 3


def test_sql_is_of_the_issue_in_its_project() -> None:
    assert f"WHERE project_id = 11 AND issue_id = '{'a' * 16}'" in as_sql(ISSUE)
