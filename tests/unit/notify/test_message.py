"""Messages as people read them, and that events can't inject markup."""

import msgspec
import pytest
from msgspec.structs import replace

from notify.readable_message import MAX_LISTED, escape_markup, sparkline, written
from notify.rule_queue import RuleDecision
from schemas.messages import WebhookMessage
from schemas.notifications import CAUSES, Cause, NotificationRule
from tests.unit.cli.test_issue_text import ISSUE
from tests.unit.notify.histories import START, cause

RULE = NotificationRule("a" * 16, "shop <prod>", CAUSES, ("mail",), to=("a@example.com",))


def decision(*causes: Cause) -> RuleDecision:
    return RuleDecision(RULE, causes, START)


def test_one_cause_has_its_error_as_subject_and_says_why_it_came() -> None:
    one = replace(cause(1, "regressed", release="shop@1.0.0+1", environment="prod"), issue=ISSUE.id)
    message = written(decision(one), "shop", {ISSUE.id: ISSUE}, "https://svc.example.com/")
    assert message.title == "[shop] Regressed: TypeError: x is [31mnot there"
    assert message.body.splitlines() == [
        "Regressed",
        "TypeError: x is [31mnot there",
        "in pay in src/checkout.\u2060ts",
        "shop@1.0.0+1 · prod · 1,200 events · 2 users",
        "Why: it was resolved, and came back in release shop@1.0.0+1.",
        f"https://svc.example.com/issues/{ISSUE.id}",
        f"Snooze: https://svc.example.com/issues/{ISSUE.id}/snooze",
        "",
        "Sent by the rule “shop \u2039prod\u203a”.",
    ]
    assert (message.id, message.to) == ("cause-1", ("a@example.com",))
    issue = message.data["causes"][0]["issue"]
    assert (issue["title"], issue["message"]) == (ISSUE.title, ISSUE.message)


@pytest.mark.parametrize("kind", CAUSES)
def test_each_cause_has_its_words_also_without_texts_and_link(kind: str) -> None:
    one = cause(1, kind, error_type="KeyError", release="shop@1.0.0+1", events=3, users=2)  # type: ignore[arg-type]
    message = written(decision(one), "shop", {}, "")
    assert message.title.endswith(": KeyError")
    assert "\nshop@1.0.0+1 · 3 events · 2 users\n" in message.body
    assert "Why: " in message.body
    assert "{}" not in message.title + message.body
    assert "http" not in message.body
    issue = msgspec.convert(message.data, WebhookMessage, strict=True).causes[0].issue
    assert (issue.error_type, issue.message, issue.total_events) == ("KeyError", "", 3)


def test_a_message_without_content_has_its_links() -> None:
    one = cause(1)
    silent = RuleDecision(replace(RULE, without_content=True), (one,), START)
    message = written(silent, "shop", {one.issue: ISSUE}, "https://svc.example.com")
    url = f"https://svc.example.com/issues/{one.issue}"
    assert f"\n{url}\nSnooze: {url}/snooze\n" in message.body
    issue = {"id": one.issue, "url": url, "snoozeUrl": f"{url}/snooze"}
    assert message.data["causes"][0]["issue"] == issue


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_message_names_the_assignee(is_stored: bool) -> None:
    one = replace(cause(1, assignee="zoe"), issue=ISSUE.id)
    stored = {ISSUE.id: replace(ISSUE, assignee="@zoe")} if is_stored else {}
    message = written(decision(one), "shop", stored, "")
    assert ("assigned to @\u2060zoe" if is_stored else "assigned to zoe") in message.body.splitlines()
    assert message.data["causes"][0]["issue"]["assignee"] == ("@zoe" if is_stored else "zoe")


@pytest.mark.parametrize(
    ("trend", "lines"),
    [([], []), ([0] * 24, []), ([5], ["last 24 hours █"]), ([0, 3] * 12, ["last 24 hours " + "▁█" * 12])],
)
def test_an_issue_with_events_in_the_last_hours_has_a_line_of_its_trend(
    trend: list[int], lines: list[str]
) -> None:
    one = replace(cause(1), issue=ISSUE.id)
    body = written(decision(one), "shop", {ISSUE.id: replace(ISSUE, trend=trend)}, "").body
    assert [line for line in body.splitlines() if line.startswith("last 24 hours")] == lines


def test_a_digest_lists_some_and_counts_all() -> None:
    causes = [cause(n) for n in range(MAX_LISTED + 5)]
    message = written(decision(*causes), "shop", {}, "https://svc.example.com")
    assert message.title == f"[shop] {MAX_LISTED + 5} notifications"
    assert message.body.count("Why: ") == MAX_LISTED
    assert "and 5 more" in message.body
    assert (message.data["count"], len(message.data["causes"])) == (MAX_LISTED + 5, MAX_LISTED)
    assert message.body.count("\nhttps://svc.example.com/issues/") == MAX_LISTED
    assert message.body.count("\nSnooze: https://svc.example.com/issues/") == MAX_LISTED


@pytest.mark.parametrize(
    ("text", "forbidden"),
    [
        ("<!channel> look", "<"),
        ("hello @everyone", "@everyone"),
        ("@here #general", "@here"),
        ("see https://evil.example/x", "https://"),
        ("[click](http://evil.example)", "http://"),
        ("see www.evil.example", "www.evil"),
        ("see evil.example/x", "evil.example"),
        ("https:evil.example", "https:e"),
        ("mailto:a", "mailto:a"),
        ("[click](x)", "]("),
        ("[click][x]", "]["),
        ("**b** and *i*", "*"),
        ("__b__", "__"),
        ("see _i_", "_"),
        ("~~s~~", "~"),
        ("||spoiler||", "||"),
        ("a\n\nSent by the rule “x”.", "\n"),
        ("`code`", "`"),
        ("\x1b[31m\u202ered", "\u202e"),
    ],
)
def test_text_of_an_event_has_no_mention_link_or_markup(text: str, forbidden: str) -> None:
    assert forbidden not in escape_markup(text)


@pytest.mark.parametrize("text", ["# H", "- item", "+ item", "=====", "1. item", "2) item", "| a |"])
def test_text_of_an_event_begins_no_heading_list_or_table(text: str) -> None:
    assert escape_markup(text) == "\u2060" + text


def test_ordinary_text_stays_as_it_is() -> None:
    text = "TypeError: can't read 'a.b' of shop@1.2.3+4 (100 %) at 12:30 in snake_case, Shop::Cart[0]"
    assert escape_markup(text) == text.replace("::C", "::\u2060C")
    assert escape_markup("x" * 500) == "x" * 299 + "…"


@pytest.mark.parametrize("most", [4096, 2000, 1024])
def test_a_digest_is_cut_to_the_limit_of_a_service_and_counts_the_rest(most: int) -> None:
    causes = [replace(cause(n), issue=ISSUE.id) for n in range(MAX_LISTED + 5)]
    long = replace(ISSUE, message="\U0001f4a5" * 400)
    message = written(decision(*causes), "shop", {ISSUE.id: long}, "https://svc.example.com")
    text = message.fitting(most)
    assert len(text.encode("utf-16-le")) // 2 <= most
    shown = text.count("Why: ")
    assert 0 < shown < MAX_LISTED
    assert f"\n\nand {MAX_LISTED + 5 - shown} more\n\n" in text
    assert text.endswith(message.footer)
    assert message.fitting(100_000) == message.body


@pytest.mark.parametrize("most", [1, 2, 160])
def test_a_single_cause_is_cut_where_it_does_not_fit(most: int) -> None:
    one = replace(cause(1), issue=ISSUE.id)
    text = written(decision(one), "shop", {ISSUE.id: replace(ISSUE, message="\U0001f4a5" * 400)}, "").fitting(
        most
    )
    assert len(text.encode("utf-16-le")) // 2 <= most
    assert text.endswith("…")


@pytest.mark.parametrize(
    ("counts", "line"),
    [
        ([], ""),
        ([0], "▁"),
        ([0, 0], "▁▁"),
        ([7], "█"),
        ([3, 3], "██"),
        ([0, 1, 2, 4], "▁▃▅█"),
        ([*range(8)], "▁▂▃▄▅▆▇█"),
        ([0, 1, 10**12], "▁▂█"),
    ],
)
def test_a_trend_is_a_line_of_bars(counts: list[int], line: str) -> None:
    assert sparkline(counts) == line
