"""Reads of single issues and of the issues of fingerprints.

They return the issue, its row, version and project, and its activity.
"""

from collections.abc import Iterable, Sequence

from msgspec import Raw, Struct

from schemas.ids import hex64, issue_id, parse_hex64
from schemas.issues import ActivityKind
from schemas.read_api import ActivityPage, ActivityRow, Issue, IssuePart
from schemas.times import iso
from storage.errors import NO_ISSUE, NotFound
from storage.read.counts.range_counts import count_issues
from storage.read.execute import Sql
from storage.read.issue_rows import IssueRow, fits, issue_by_id, issue_number, issues_of, to_issue
from storage.read.query.cursors import ActivityCursor, read_cursor, write_cursor
from storage.read.query.question import Question
from storage.read.reader import IssueCall, ReadCall, Session, check_limit


class GetIssue(IssueCall[Issue], frozen=True):
    """One issue, counted in range and query. For a merged issue: the issue that now has its events."""

    async def fetch(self, session: Session) -> Issue:
        """The issue; counts are 0 if it doesn't meet the query's conditions on issues."""
        row = await session.issue(self.issue)
        question = self.question(session, row.project_id)
        matching = fits(row, question.of_issue, question.now_ms)
        counts = await count_issues(session, question, {row.issue_id: row.fingerprints} if matching else {})
        return to_issue(row, counts[row.issue_id])


class GetIssueRow(ReadCall[IssueRow], frozen=True):
    """The row of an issue, with its grouping parts and the latest 100 releases in which it was seen."""

    issue: str

    async def fetch(self, session: Session) -> IssueRow:
        return await session.issue(self.issue)


class ListParts(ReadCall[list[IssuePart]], frozen=True):
    """The parts of a merged issue, in the order given.

    A part is the issue of one of the fingerprints, as it was when it had just that one.
    """

    project: int
    fingerprints: Sequence[str]

    async def fetch(self, session: Session) -> list[IssuePart]:
        """A part without a stored issue has empty texts."""
        ids = {text: issue_id(self.project, parse_hex64(text) or 0) for text in self.fingerprints}
        found = {
            number: texts
            for number, *texts in await session.rows(_texts(session.question(self.project), ids.values()))
        }
        return [IssuePart(text, *found.get(number, ("", "", ""))) for text, number in ids.items()]


class FindProject(ReadCall[int], frozen=True):
    """The project of an issue."""

    issue: str

    async def fetch(self, session: Session) -> int:
        # Not from the session's memory, and one row for any id: an issue of others takes as long as none.
        [[project]] = await session.rows(issue_by_id(issue_number(self.issue), None, "max(project_id)"))
        if not project:
            raise NotFound(NO_ISSUE)
        return int(project)


class CountIssues(ReadCall[list[Issue]], frozen=True):
    """Issues of a project, given by their rows, counted in the last 14 days."""

    project: int
    rows: Sequence[IssueRow]

    async def fetch(self, session: Session) -> list[Issue]:
        """The issues in the order of their rows."""
        question = session.question(self.project)
        fingerprints = {row.issue_id: row.fingerprints for row in self.rows}
        counts = await count_issues(session, question, fingerprints)
        return [to_issue(row, counts[row.issue_id]) for row in self.rows]


class FindIssues(ReadCall[dict[str, str]], frozen=True):
    """The issue that now has the events of each fingerprint; fingerprints without an issue are left out."""

    project: int
    fingerprints: Sequence[str]

    async def fetch(self, session: Session) -> dict[str, str]:
        numbers = [number for number in map(parse_hex64, self.fingerprints) if number is not None]
        if not numbers:
            return {}
        rows = await session.rows(issues_of(session.question(self.project), numbers))
        return {hex64(fingerprint): hex64(issue) for fingerprint, issue in rows}


class IssueVersion(Struct, frozen=True):
    """The version of an issue's newest row, and the issue that it was merged into."""

    version: int
    merged_into: str | None


class GetIssueVersions(ReadCall[dict[str, IssueVersion]], frozen=True):
    """The visible version of each existing issue: shows whether a change has reached ClickHouse."""

    project: int
    issues: Sequence[str]

    async def fetch(self, session: Session) -> dict[str, IssueVersion]:
        statement = session.question_ever(self.project).statement()
        rows = await session.rows(
            statement.ready(
                f"SELECT issue_id, version, merged_into FROM issues FINAL WHERE {statement.project}"
                f" AND issue_id IN {statement.numbers([issue_number(issue) for issue in self.issues])} AND deleted = 0"
            )
        )
        return {
            hex64(issue): IssueVersion(version, hex64(merged_into) if merged_into else None)
            for issue, version, merged_into in rows
        }


class ListActivity(ReadCall[ActivityPage], frozen=True):
    """A page of the changes of an issue and of the issues merged into it, newest first.

    Changes of some kinds are left out.
    """

    issue: str
    limit: int = 50
    cursor: str | None = None
    without: Sequence[ActivityKind] = ()

    async def fetch(self, session: Session) -> ActivityPage:
        check_limit(self.limit)
        last = read_cursor(self.cursor, ActivityCursor)
        row = await session.issue(self.issue)
        project = row.project_id
        # Each fingerprint opened a separate issue; a merge doesn't rewrite that issue's changes.
        issues = {row.issue_id, *(issue_id(project, number) for number in row.fingerprints)}
        rows = await session.rows(_changes(session.question_ever(project), sorted(issues), self, last))
        page = [
            ActivityRow(
                id=change, kind=kind, by=by, at=iso(at), data=Raw(data.encode() or b"{}"), issue_id=hex64(of)
            )
            for change, kind, by, at, data, of, _ in rows[: self.limit]
        ]
        next_cursor = None
        if len(rows) > self.limit:
            change, _, _, at, *_, users = rows[self.limit - 1]
            next_cursor = write_cursor(ActivityCursor(int(at), users, change))
        return ActivityPage(activity=page, next_cursor=next_cursor)


def _changes(
    question: Question, issues: Sequence[int], call: ListActivity, cursor: ActivityCursor | None
) -> Sql:
    """Id, kind, author, time (Unix ms), data, issue and users reached of the newest changes.

    Up to one more than the limit.
    """
    statement = question.statement()
    after, order = "", _order("id", "users")
    if cursor is not None:
        moment, last = statement.parameters.moment(cursor.time), statement.parameters.add(cursor.id, "String")
        users = statement.parameters.add(cursor.users, "UInt64")
        after = f" AND (at < {moment} OR (at = {moment} AND {order} < {_order(last, users)}))"
    return statement.ready(
        "SELECT id, kind, by, toUnixTimestamp64Milli(at), data, issue_id,"
        " JSONExtractUInt(data, 'users') AS users FROM issue_activity FINAL"
        f" WHERE {statement.project} AND issue_id IN {statement.numbers(issues)}{after}"
        f" AND kind NOT IN {statement.parameters.add(list(call.without), 'Array(String)')}"
        f" ORDER BY at DESC, {order} DESC LIMIT {call.limit + 1:d}"
    )


def _order(change: str, users: str) -> str:
    """The order of changes of one instant: by the users reached, then as in the log, from their ids.

    The id of a change by an event has issue, partition, offset, kind and number; that of "created" has no offset.
    Offsets of different partitions have no order, but users only grow.
    """
    parts = f"splitByChar('-', {change})"
    return f"({users}, toUInt64OrZero({parts}[3]), toUInt64OrZero({parts}[-1]), {change})"


def _texts(question: Question, issues: Iterable[int]) -> Sql:
    """Issue, type, message, culprit and events, also of issues that are merged into another."""
    statement = question.statement()
    return statement.ready(
        "SELECT issue_id, error_type, message, culprit, events"
        f" FROM issues FINAL WHERE {statement.project} AND deleted = 0"
        f" AND issue_id IN {statement.numbers(list(issues))}"
    )
