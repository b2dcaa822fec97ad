"""The activity of an issue, as its page shows it."""

import json
from typing import Any

import pytest
from msgspec import Raw

from dashboard.view.activity import describe, resolved_after
from schemas.read_api import ActivityRow


@pytest.mark.parametrize(
    ("kind", "data", "sentence"),
    [
        ("created", {"release": "shop@1.0.0+1"}, "Opened with shop@1.0.0+1"),
        ("regressed", {"release": "shop@1.0.0+2"}, "Regressed with shop@1.0.0+2"),
        ("resolved", {}, "Resolved "),
        ("resolved", {"resolvedIn": "shop@1.0.0+2"}, "Resolved in shop@1.0.0+2"),
        ("resolved", {"resolvedIn": "next"}, "Resolved in the next release"),
        (
            "resolved",
            {"resolvedIn": "next", "after": "shop@1.0.0+2"},
            "Resolved in the next release after shop@1.0.0+2",
        ),
        ("ignored", {}, "Ignored forever"),
        ("ignored", {"ignoreUntil": {"events": 1}}, "Ignored until 1 more event"),
        ("ignored", {"ignoreUntil": {"users": 1200}}, "Ignored until 1,200 more users"),
        (
            "ignored",
            {"ignoreUntil": {"time": "2026-12-01T00:00:00Z"}},
            "Ignored until 2026-12-01 00:00:00 UTC",
        ),
        ("reopened", {}, "Reopened "),
        ("reopened", {"ignoreUntil": {"events": 3}}, "Reopened after being ignored until 3 more events"),
        ("merged", {"issue": "1f", "fingerprints": ["1f"]}, "Merged with 1f"),
        ("merged", {"into": "2f"}, "Merged into 2f"),
        ("unmerged", {"issues": ["1f", "3f"], "fingerprints": ["1f", "3f"]}, "Unmerged 1f, 3f"),
        ("unmerged", {"from": "2f"}, "Unmerged from 2f"),
        ("assigned", {"assignee": "Jo"}, "Assignee Jo"),
        ("assigned", {"assignee": None}, "Assignee removed"),
        ("commented", {"text": "seen in May too"}, "Comment seen in May too"),
        ("ignored", {"ignoreUntil": {"escalating": True}}, "Ignored until it escalates"),
        ("seenInRelease", {"release": "shop@2.0.0+1"}, "First event in release shop@2.0.0+1"),
        ("seenInEnvironment", {"environment": "prod"}, "First event in environment prod"),
        ("usersReached", {"users": 1000}, "Users 1,000 reached"),
        ("escalated", {"events": 18000}, "Escalated 18,000 events within an hour, far more than before"),
        ("ignored", {"ignoreUntil": "soon"}, "Ignored forever"),
        ("exported", {"to": "x"}, "exported "),
    ],
)
def test_each_change_is_described_with_its_terms(kind: str, data: dict[str, Any], sentence: str) -> None:
    row = ActivityRow(
        id="1",
        kind=kind,
        by="jo",
        at="2026-11-21T18:00:00.000Z",
        data=Raw(json.dumps(data).encode()),
        issue_id="1f",
    )
    change = describe(row, "1f")
    assert f"{change.title} {change.text}" == sentence
    assert change.merged_issue == ""
    assert describe(row, "2f").merged_issue == "1f"


def test_an_assignment_by_the_owners_says_so() -> None:
    data = Raw(b'{"assignee":"Jo"}')
    row = ActivityRow("1", "assigned", "system", "2026-11-21T18:00:00.000Z", data, "1f")
    assert describe(row, "1f").text == "Jo, by the owners of the project"


def test_the_next_release_is_after_the_newest_change_of_the_issue_itself() -> None:
    def made(second: int, kind: str, data: dict[str, Any], issue: str = "1f") -> ActivityRow:
        at = f"2026-11-21T18:00:0{second}.000Z"
        return ActivityRow(str(second), kind, "jo", at, Raw(json.dumps(data).encode()), issue)

    older = made(1, "resolved", {"resolvedIn": "next", "after": "shop@1.0.0+2"})
    newer = made(2, "resolved", {"resolvedIn": "next", "after": "shop@2.0.0+2"})
    part = made(3, "resolved", {"resolvedIn": "next", "after": "shop@3.0.0+2"}, "2f")
    assert resolved_after([made(4, "commented", {"text": "x"}), part, newer, older], "1f") == "shop@2.0.0+2"
    assert resolved_after([made(5, "resolved", {}), newer], "1f") == ""
    assert resolved_after([], "1f") == ""
