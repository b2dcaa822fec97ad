"""The output of `svc issues show`: words for people, no values of the program."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from cli.issue_text import lines
from schemas.read_api import ActivityRow, Issue

ISSUE = Issue(
    id="00000000000000aa",
    project_id="7",
    title="TypeError: x is \x1b[31mnot there",
    error_type="TypeError",
    message="x is \x1b[31mnot\nthere",
    culprit="pay in src/checkout.ts",
    status="open",
    regressed=False,
    escalated_at=None,
    platform="javascript",
    first_seen="2026-01-01T10:00:00.000Z",
    last_seen="2026-01-31T10:00:00.000Z",
    events=3,
    users=2,
    total_events=1200,
    total_users=2,
    first_release="shop@1.0.0+1",
    last_release="",
    environments=["prod", "staging"],
    assignee=None,
    resolved_in=None,
    ignore_until=None,
    fingerprints=["00000000000000aa", "00000000000000bb"],
    trend=[0] * 14,
)


def change(kind: str, **data: Any) -> ActivityRow:
    raw = msgspec.Raw(msgspec.json.encode(data))
    return ActivityRow("1", kind, "ann", "2026-01-02T10:00:00.000Z", raw, ISSUE.id)


def text_of(issue: Issue, *changes: ActivityRow) -> str:
    return "\n".join(lines(issue, changes))


def test_an_issue_reads_without_values_of_the_program() -> None:
    text = text_of(ISSUE, change("resolved", resolvedIn="next"), change("commented", text="look [here]"))
    assert not any(word in text for word in ("None", "True", "False", "['", "{", "T10:00"))
    assert "Events        1,200 in all, 3 in the last 14 days" in text
    assert "First seen    2026-01-01 10:00:00 UTC, shop@1.0.0+1" in text
    assert "Fingerprints  00000000000000aa, 00000000000000bb" in text
    assert "2026-01-02 10:00:00 UTC  Resolved in the next release, by ann" in text
    assert "Comment look [here], by ann" in text


def test_texts_of_an_event_move_no_cursor_and_start_no_line() -> None:
    assert "\x1b" not in text_of(ISSUE)
    assert text_of(ISSUE).splitlines()[0].endswith("there")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"regressed": True}, "open, regressed"),
        ({"status": "resolved", "resolved_in": "shop@2.0.0+1"}, "resolved in shop@2.0.0+1"),
        ({"status": "ignored", "ignore_until": {"events": 5}}, "ignored until 5 more events"),
    ],
)
def test_the_state_includes_its_condition(given: dict[str, Any], words: str) -> None:
    assert f"State         {words}\n" in text_of(replace(ISSUE, **given))
