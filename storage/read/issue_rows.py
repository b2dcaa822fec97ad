"""Rows of `issues`: their columns, lookups by id and by fingerprint, and the read API's issue for a row."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from query.evaluate import matches
from query.event_view import EventView, IssueView
from query.tree import Query
from schemas.ids import hex64, parse_hex64
from schemas.issues import IssueRecord, encode_json, issue_title
from schemas.read_api import Issue
from schemas.times import HOUR_MS, iso, parse_iso
from storage.errors import NO_ISSUE, NotFound
from storage.read.execute import Sql
from storage.read.query.query_sql import STATUS, Parameters
from storage.read.query.question import Question
from storage.read.query.ranges import UNIT_MS, floor, resolve_range, trend_counts, trend_unit

ISSUE_COLUMNS: Final = (
    "project_id, issue_id, fingerprints, error_type, message, culprit, platform,"
    f" {STATUS}, regressed, toUnixTimestamp64Milli(first_seen), toUnixTimestamp64Milli(last_seen), events, users,"
    " first_release, last_release, environments, assignee, resolved_in, ignore_until, merged_into,"
    " toUnixTimestamp64Milli(escalated)"
)
WHOLE_ISSUE: Final = f"{ISSUE_COLUMNS}, grouping_parts, releases"


class IssueRow(Struct, frozen=True):
    """A row with the columns `ISSUE_COLUMNS`, in their order; times are Unix ms.

    Grouping parts and releases are empty unless the columns are `WHOLE_ISSUE`.
    """

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
    escalated: int
    grouping_parts: list[str] = []
    releases: list[str] = []

    @property
    def gap(self) -> int:
        """Average milliseconds between two of its events."""
        return (self.last_seen - self.first_seen) // max(1, self.events)


class RangeCounts(Struct, frozen=True):
    """Counts of an issue for a range and query."""

    events: int = 0
    users: int = 0
    trend: tuple[int, ...] = ()


def issue_number(text: str) -> int:
    """The number of an issue id. Raises NotFound if the text is not an issue id."""
    number = parse_hex64(text)
    if number is None:
        raise NotFound(NO_ISSUE)
    return number


def issue_by_id(issue: int, project: int | None, columns: str) -> Sql:
    """Columns of an issue.

    Ids are unique across projects; if the project is given, the primary key is used.
    """
    parameters = Parameters()
    conditions = [f"issue_id = {parameters.add(issue, 'UInt64')}", "deleted = 0"]
    if project is not None:
        conditions.append(f"project_id = {parameters.add(project, 'UInt32')}")
    text = f"SELECT {columns} FROM issues FINAL WHERE {' AND '.join(conditions)} LIMIT 1"
    return Sql(text, parameters.values)


def issues_of(question: Question, fingerprints: Sequence[int]) -> Sql:
    """Fingerprint and issue, for the fingerprints that belong to a known issue."""
    statement = question.statement()
    numbers = statement.numbers(fingerprints)
    return statement.ready(
        "SELECT fingerprint, issue_id FROM (SELECT arrayJoin(fingerprints) AS fingerprint, issue_id FROM"
        f" issues FINAL WHERE {statement.project} AND deleted = 0 AND merged_into = 0"
        f" AND hasAny(fingerprints, {numbers})) WHERE fingerprint IN {numbers}"
    )


def fits(row: IssueRow, of_issue: Query, now_ms: int) -> bool:
    """Whether a row meets a query's conditions on the issue."""
    issue = IssueView(
        status=row.status,
        regressed=bool(row.regressed),
        assignee=row.assignee,
        first_release=row.first_release,
        first_seen=row.first_seen,
        last_seen=row.last_seen,
        events=row.events,
        users=row.users,
        escalated=row.escalated,
    )
    return matches(of_issue, EventView(issue=issue), now_ms)


def users_of(row: IssueRow, counted: RangeCounts) -> int:
    """The users of the counted events: of all its events those of its life, so that there is one estimate."""
    return row.users if counted.events == row.events else counted.users


def to_issue(row: IssueRow, counted: RangeCounts) -> Issue:
    """The issue as the read API returns it.

    Totals come from the processors and range counts from ClickHouse, and both estimate users: a total is
    raised to the count of a part.
    """
    users = users_of(row, counted)
    return Issue(
        id=hex64(row.issue_id),
        project_id=str(row.project_id),
        title=issue_title(row.error_type, row.message),
        error_type=row.error_type,
        message=row.message,
        culprit=row.culprit,
        status=row.status,
        regressed=bool(row.regressed),
        escalated_at=iso(row.escalated) if row.escalated else None,
        platform=row.platform,
        first_seen=iso(row.first_seen),
        last_seen=iso(row.last_seen),
        events=counted.events,
        users=users,
        total_events=max(row.events, counted.events),
        total_users=max(row.users, users),
        first_release=row.first_release,
        last_release=row.last_release,
        environments=list(row.environments),
        assignee=row.assignee or None,
        resolved_in=row.resolved_in or None,
        ignore_until=msgspec.json.decode(row.ignore_until) if row.ignore_until else None,
        fingerprints=[hex64(number) for number in row.fingerprints],
        trend=list(counted.trend),
    )


def row_of(record: IssueRecord, now_ms: int) -> IssueRow:
    """The row that a record of the topic `issues` becomes."""
    platforms = record.platforms
    return IssueRow(
        project_id=int(record.project_id),
        issue_id=int(record.id, 16),
        fingerprints=[int(fingerprint, 16) for fingerprint in record.fingerprints],
        error_type=record.error_type,
        message=record.message,
        culprit=record.culprit,
        platform=max(platforms, key=lambda name: (platforms[name], name), default=""),
        status="open" if _snooze_ended(record, now_ms) else record.status,
        regressed=int(record.regressed),
        first_seen=record.first_seen_ms,
        last_seen=record.last_seen_ms,
        events=record.events,
        users=record.users,
        first_release=record.first_release,
        last_release=record.last_release,
        environments=sorted(record.environments),
        assignee=record.assignee or "",
        resolved_in=record.resolved_in or "",
        ignore_until=encode_json(record.ignore_until).decode() if record.ignore_until else "",
        merged_into=int(record.merged_into, 16) if record.merged_into else 0,
        escalated=record.escalated_ms,
    )


def issue_of(record: IssueRecord, now_ms: int, start: int | None = None) -> Issue:
    """The issue of a record, with the record's counts since `start`, by default of the last 14 days.

    ClickHouse may not have the record yet. Events are counted by the hour. Users are an upper bound, since a
    record has only the total.
    """
    span = resolve_range(start, None, now_ms)
    hours = {hour * HOUR_MS: events for hour, events in record.hours.items() if hour * HOUR_MS >= span.start}
    events, unit = sum(hours.values()), UNIT_MS[trend_unit(span, now_ms)]
    trend: Counter[int] = Counter()
    for hour, count in hours.items():
        trend[floor(hour, unit)] += count
    counted = RangeCounts(events, min(record.users, events), tuple(trend_counts(trend, span, now_ms)))
    return to_issue(row_of(record, now_ms), counted)


def _snooze_ended(record: IssueRecord, now_ms: int) -> bool:
    """Whether the issue is ignored until a time that has passed, as in `query_sql.STATUS`."""
    time = (record.ignore_until or {}).get("time")
    return record.status == "ignored" and time is not None and parse_iso(time) <= now_ms
