"""The notice after a change, and its undo."""

from typing import Any

import pytest
from msgspec.structs import replace

from dashboard.view.change_notice import ChangeNotice, change_notice
from schemas.ids import hex64, issue_id
from schemas.read_api import Issue

OTHER = hex64(issue_id(11, 9))
ISSUE = Issue(
    id="a" * 16, project_id="11", title="E: m", error_type="E", message="m", culprit="", status="open", regressed=False,
 escalated_at=None,
    platform="python", first_seen="2026-01-01T00:00:00.000Z", last_seen="2026-01-02T00:00:00.000Z", events=1, users=1,
    total_events=1, total_users=1, first_release="", last_release="", environments=[], assignee=None, resolved_in=None,
    ignore_until=None, fingerprints=[hex64(7)], trend=[],
)  # fmt: skip


def noticed(change: str, was: str = "", *, is_confirmed: bool = True, **fields: Any) -> ChangeNotice | None:
    return change_notice(change, was, replace(ISSUE, **fields), is_confirmed=is_confirmed)


@pytest.mark.parametrize(
    ("change", "was", "fields", "text", "undo"),
    [
        ("resolve", "open", {"status": "resolved"}, "Resolved.", {"change": "reopen"}),
        (
            "resolve",
            "ignored",
            {"status": "resolved", "resolved_in": "next"},
            "Resolved in the next release.",
            {"change": "ignore"},
        ),
        ("resolve", "resolved", {"status": "resolved", "resolved_in": "a@1+1"}, "Resolved in a@1+1.", None),
        (
            "ignore",
            "open",
            {"status": "ignored", "ignore_until": {"events": 1000}},
            "Ignored until 1,000 more events.",
            {"change": "reopen"},
        ),
        ("reopen", "resolved", {}, "Reopened.", {"change": "resolve"}),
        ("assign", "ann", {"assignee": "bob"}, "Assigned to bob.", {"change": "assign", "assignee": "ann"}),
        ("assign", "bob", {"assignee": "bob"}, "Assigned to bob.", None),
        ("assign", "ann", {}, "Unassigned.", {"change": "assign", "assignee": "ann"}),
        (
            "merge",
            OTHER,
            {"fingerprints": [hex64(7), hex64(9)]},
            f"Issue {OTHER} was merged into this one.",
            {"change": "unmerge", "fingerprint": hex64(9)},
        ),
        (
            "unmerge",
            hex64(9),
            {},
            f"The events of {hex64(9)} are a separate issue again.",
            {"change": "merge", "other": OTHER},
        ),
        ("comment", "open", {}, "The comment is in the history.", None),
    ],
)
def test_a_change_shows_a_notice_and_can_be_undone(
    change: str, was: str, fields: dict[str, Any], text: str, undo: dict[str, str] | None
) -> None:
    assert noticed(change, was, **fields) == ChangeNotice(text, is_done=True, undo=undo)


@pytest.mark.parametrize(
    ("change", "was", "fields"),
    [
        ("resolve", "open", {}),
        ("ignore", "open", {"status": "resolved"}),
        ("merge", OTHER, {}),
        ("merge", "<b>", {"fingerprints": [hex64(7), hex64(9)]}),
        ("unmerge", hex64(9), {"fingerprints": [hex64(7), hex64(9)]}),
    ],
)
def test_a_change_that_the_issue_does_not_show_is_pending(
    change: str, was: str, fields: dict[str, Any]
) -> None:
    assert noticed(change, was, **fields) == ChangeNotice("", is_done=False)


def test_a_change_is_pending_until_the_issue_shows_it() -> None:
    for change in ("assign", "comment", "discard"):
        assert noticed(change, is_confirmed=False) == ChangeNotice("", is_done=False)
    assert noticed("resolve", "open", is_confirmed=False, status="resolved") is not None


@pytest.mark.parametrize("change", ["", "explode", "<script>"])
def test_an_unknown_change_says_nothing(change: str) -> None:
    assert noticed(change) is None
