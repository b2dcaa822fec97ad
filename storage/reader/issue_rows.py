"""Rows of `issues`, and what a page of them is made of."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from query.evaluate import matches
from query.event_view import EventView, IssueView
from query.tree import Query
from schemas.ids import hex64
from schemas.times import iso
from storage.reader.answers import Issue
from storage.reader.issue_states import STATUS

_COLUMNS: Final = (
    "project_id",
    "issue_id",
    "fingerprints",
    "error_type",
    "message",
    "culprit",
    "platform",
    STATUS,
    "regressed",
    "toUnixTimestamp64Milli(first_seen)",
    "toUnixTimestamp64Milli(last_seen)",
    "events",
    "users",
    "first_release",
    "last_release",
    "environments",
    "assignee",
    "resolved_in",
    "ignore_until",
    "merged_into",
)
COLUMNS: Final = ", ".join(_COLUMNS)


class IssueRow(Struct, frozen=True):
    """One row, its columns in the order of `COLUMNS`; times are Unix ms."""

    project_id: int
    issue_id: int
    fingerprints: list[int]
    error_type: str
    message: str
    culprit: str
    platform: str
    status: str
    regressed: int
    first_seen: int
    last_seen: int
    events: int
    users: int
    first_release: str
    last_release: str
    environments: list[str]
    assignee: str
    resolved_in: str
    ignore_until: str
    merged_into: int


class RangeCounts(Struct, frozen=True):
    """What a range and query add to a row."""

    events: int = 0
    users: int = 0
    trend: tuple[int, ...] = ()


def read_row(columns: Sequence[Any]) -> IssueRow:
    """A row of an answer that selected `COLUMNS`."""
    return IssueRow(*columns)


def fits(row: IssueRow, of_issue: Query, now_ms: int) -> bool:
    """Whether what a query asks of the issue holds for a row."""
    issue = IssueView(
        status=row.status,
        regressed=bool(row.regressed),
        assignee=row.assignee,
        first_seen=row.first_seen,
        last_seen=row.last_seen,
        events=row.events,
        users=row.users,
    )
    return matches(of_issue, EventView(issue=issue), now_ms)


def answer(row: IssueRow, counted: RangeCounts) -> Issue:
    """The issue as the read API shows it.

    Life and range are counted apart, life by the processors and users by a sketch on either side: the totals are never less than
    what is counted of them.
    """
    return Issue(
        id=hex64(row.issue_id),
        project_id=str(row.project_id),
        error_type=row.error_type,
        message=row.message,
        culprit=row.culprit,
        status=row.status,
        regressed=bool(row.regressed),
        platform=row.platform,
        first_seen=iso(row.first_seen),
        last_seen=iso(row.last_seen),
        events=counted.events,
        users=counted.users,
        total_events=max(row.events, counted.events),
        total_users=max(row.users, counted.users),
        first_release=row.first_release,
        last_release=row.last_release,
        environments=list(row.environments),
        assignee=row.assignee or None,
        resolved_in=row.resolved_in or None,
        ignore_until=msgspec.json.decode(row.ignore_until) if row.ignore_until else None,
        fingerprints=[hex64(number) for number in row.fingerprints],
        trend=list(counted.trend),
    )
