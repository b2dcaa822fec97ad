"""The issue list: which issues are on a page, in which order, and their counts."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, get_args

from msgspec import Struct
from msgspec.structs import replace

from schemas.ids import parse_hex64
from schemas.read_api import IssuePage, Sort
from storage.errors import BadQuery
from storage.read.counts.range_counts import (
    COUNTS,
    USERS_MERGED,
    by_bucket,
    by_fingerprint,
    count_issues,
    from_events,
    read_counts,
)
from storage.read.execute import Rows, Sql
from storage.read.issue_rows import ISSUE_COLUMNS, IssueRow, RangeCounts, to_issue, users_of
from storage.read.query.cursors import IssueCursor, read_cursor, write_cursor
from storage.read.query.query_sql import rank
from storage.read.query.question import Question, Statement
from storage.read.query.ranges import UNIT_MS, Range, trend_unit, trend_window
from storage.read.reader import ProjectCall, Session, check_limit

SORTS: Final = get_args(Sort)
MIN_CANDIDATES: Final = 150
"""Issues that are counted to find a page by priority, or one of those with events in an environment or release."""
_TIME_COLUMNS: Final = {"lastSeen": "last_seen", "firstSeen": "first_seen"}
_COUNT_BITS: Final = 30


def _priority(rank: str, users: str, events: str) -> str:
    """A sort key: the rank, then users, then events."""
    most, low = (1 << _COUNT_BITS) - 1, f"least({events}, {(1 << _COUNT_BITS) - 1})"
    return f"toInt64({rank}) * {1 << 2 * _COUNT_BITS} + toInt64(least({users}, {most})) * {most + 1} + toInt64({low})"


_USERS: Final = f"if(sum(n) = any(all_events), toUInt64(any(all_users)), {USERS_MERGED})"
"""As `users_of`."""
_KEYS: Final[dict[Sort, str]] = {
    "lastSeen": "toUnixTimestamp64Milli(any(last_seen))",
    "firstSeen": "toUnixTimestamp64Milli(any(first_seen))",
    "events": "toInt64(sum(n))",
    "users": f"toInt64({_USERS})",
    # The growth from the older to the newer half of the trend, in thousandths of a standard deviation.
    "trend": (
        "toInt64(round(1000 * (toInt64(sum(newer)) - toInt64(sum(older)))"
        " / sqrt(greatest(1, sum(newer) + sum(older)))))"
    ),
    "priority": _priority("any(rank)", _USERS, "sum(n)"),
}

MAX_COUNTED: Final = 10_000
"""Issues that a separate statement counts: at a million issues a twelfth of the page's time, and all of them
would take more than half."""

Keyed = tuple[int, IssueRow]
Page = tuple[list[Keyed], Mapping[int, RangeCounts]]


class Total(Struct, frozen=True):
    """The number of issues in a list, or of those known of it."""

    count: int
    is_bound: bool


class ListIssues(ProjectCall[IssuePage], frozen=True):
    """A page of the issues that have an event in range and query."""

    sort: Sort = "lastSeen"
    limit: int = 50
    cursor: str | None = None

    async def fetch(self, session: Session) -> IssuePage:
        check_limit(self.limit)
        if self.sort not in SORTS:
            raise BadQuery("sort", f"one of {', '.join(SORTS)}")
        question = self.question(session)
        last = read_cursor(self.cursor, IssueCursor)
        if last is not None:
            if last.sort != self.sort:
                raise BadQuery("cursor", "a nextCursor of the same list")
            # All pages use the range of the first.
            question = replace(question, span=Range(last.start, last.end), now_ms=last.now_ms)
        rows, counts, total = await _page(session, question, self.sort, self.limit, last)
        page, offset = rows[: self.limit], last.offset if last is not None else 0
        if len(rows) <= self.limit:
            total = Total(offset + len(page), is_bound=False)
        elif last is not None:
            # Issues may have come since the first page.
            total = Total(max(last.total, offset + len(rows)), last.is_bound)
        next_cursor = None
        if len(rows) > self.limit:
            before = last or IssueCursor.begin(
                self.sort, question.span, question.now_ms, total.count, is_bound=total.is_bound
            )
            next_cursor = write_cursor(before.after(page[-1][0], [row.issue_id for _, row in page]))
        return IssuePage(
            # An issue may become visible shortly before the block of its first events.
            issues=[to_issue(row, counts[row.issue_id]) for _, row in page if counts[row.issue_id].events],
            next_cursor=next_cursor,
            offset=offset,
            total=total.count,
            total_is_bound=total.is_bound,
        )


async def _page(
    session: Session, question: Question, sort: Sort, limit: int, last: IssueCursor | None
) -> tuple[list[Keyed], Mapping[int, RangeCounts], Total]:
    """Sort keys and rows of a page, up to one more than the limit, and the counts of each issue.

    For a first page it also returns the total.
    """
    if needs_no_counts(question, sort):
        (rows, counts), total = await asyncio.gather(
            _by_row(session, question, sort, limit, last, limit), _total(session, question, last)
        )
        return rows, counts, total
    if sort in _TIME_COLUMNS and question.level == "deployment":
        # A filter by environment or release matches many issues: the page is most likely among the first ones.
        candidates = max(MIN_CANDIDATES, 2 * limit)
        rows, counts = await _by_row(session, question, sort, candidates, last)
        matching = [(key, row) for key, row in rows if counts[row.issue_id].events]
        if len(matching) > limit or len(rows) <= candidates:
            return matching[: limit + 1], counts, Total(len(matching), is_bound=len(rows) > candidates)
    if sort == "priority" and question.level != "events" and (last is None or last.issues is not None):
        ranked = await _ranked_page(session, question, limit, last)
        if ranked is not None:
            return ranked
    if counts_while_paging(question):
        keys = await session.rows(page_with_counts(question, sort, limit, last))
        counts = read_counts(question, [columns for _, _, *columns in keys])
        return await _rows(session, question, keys), counts, _total_of(keys)
    keys = await session.rows(counted_page(question, sort, limit, last))
    page, counts = await asyncio.gather(
        _rows(session, question, keys),
        count_issues(session, question, {issue: fingerprints for _, _, issue, fingerprints in keys[:limit]}),
    )
    return page, counts, _total_of(keys)


async def _ranked_page(
    session: Session, question: Question, limit: int, last: IssueCursor | None
) -> tuple[list[Keyed], Mapping[int, RangeCounts], Total] | None:
    """A page by priority from the issues with the highest priority of their life.

    In a range an issue has no more users and events than in its life, so its key there is an upper bound: the
    page is exact once its last issue is at or above the last candidate. None if it isn't.
    """
    candidates = max(MIN_CANDIDATES, 2 * limit)
    found, counts = await _by_row(session, question, "priority", candidates, last)
    most = (1 << _COUNT_BITS) - 1

    def exact(key: int, row: IssueRow) -> int:
        counted = counts[row.issue_id]
        users, events = min(users_of(row, counted), most), min(counted.events, most)
        return (key >> 2 * _COUNT_BITS << 2 * _COUNT_BITS) + (users << _COUNT_BITS) + events

    keyed = [(exact(key, row), row) for key, row in found if counts[row.issue_id].events]
    keyed.sort(key=lambda one: (one[0], one[1].issue_id), reverse=True)
    is_whole = len(found) <= candidates
    if not is_whole:
        bound = (found[-1][0], found[-1][1].issue_id)
        if len(keyed) <= limit or (keyed[limit][0], keyed[limit][1].issue_id) < bound:
            return None
    total = Total(len(keyed), is_bound=not is_whole)
    if not is_whole and counts_from_issues(question):
        total = await _total(session, question, last)
    return keyed[: limit + 1], counts, total


async def _total(session: Session, question: Question, last: IssueCursor | None) -> Total:
    """The total of a list that `issues` alone determines, up to `MAX_COUNTED`.

    After the first page of the list, the cursor has it.
    """
    if last is not None:
        return Total(0, is_bound=True)
    [[count]] = await session.rows(issues_since(question, MAX_COUNTED))
    return Total(count, is_bound=count == MAX_COUNTED)


def _total_of(keys: Rows) -> Total:
    """The total as the rows of a counted page have it."""
    return Total(keys[0][1] if keys else 0, is_bound=False)


async def _by_row(
    session: Session,
    question: Question,
    sort: Sort,
    limit: int,
    last: IssueCursor | None,
    counted: int | None = None,
) -> Page:
    """The first issues by the columns of their rows, and the counts of the first `counted`.

    Up to one more than the limit.
    """
    rows = await session.rows(page_by_row(question, sort, limit, last))
    keyed = [(key, IssueRow(*columns)) for key, *columns in rows]
    fingerprints = {row.issue_id: row.fingerprints for _, row in keyed[:counted]}
    return keyed, await count_issues(session, question, fingerprints)


async def _rows(session: Session, question: Question, keys: Rows) -> list[Keyed]:
    """The rows of a page's issues, with their sort keys."""
    if not keys:
        return []
    rows = await session.rows(rows_by_id(question, [issue for _, _, issue, *_ in keys]))
    by_id = {row.issue_id: row for row in (IssueRow(*columns) for columns in rows)}
    # An issue may have changed between the two statements so that it no longer matches.
    return [(key, by_id[issue]) for key, _, issue, *_ in keys if issue in by_id]


def needs_no_counts(question: Question, sort: Sort) -> bool:
    """Whether `issues` alone determines the page."""
    return sort in _TIME_COLUMNS and counts_from_issues(question)


def counts_from_issues(question: Question) -> bool:
    """Whether `issues` alone determines which issues a list has.

    In a range without end, an issue has events if it was last seen after the start.
    """
    return question.level == "rollup" and question.span.end is None


def page_by_row(question: Question, sort: Sort, limit: int, cursor: IssueCursor | None) -> Sql:
    """Sort key and `ISSUE_COLUMNS` of a page ordered by a time of the issue, or by the priority of its life.

    Up to one more than the limit.

    Unless `needs_no_counts`, it may include issues without an event in range and query.
    """
    statement = question.statement()
    since = statement.parameters.moment(question.span.start)
    key = (
        _priority(rank(statement.scope), "users", "events")
        if sort == "priority"
        else f"toUnixTimestamp64Milli({_TIME_COLUMNS[sort]})"
    )
    return statement.ready(
        f"SELECT {key} AS key, {ISSUE_COLUMNS} FROM {statement.issues}"
        f" AND last_seen >= {since} AND {_after(statement, cursor)}"
        f" ORDER BY key DESC, issue_id DESC LIMIT {limit + 1:d}"
    )


def issues_since(question: Question, limit: int) -> Sql:
    """The number of issues that were last seen after the start, up to the limit.

    It is the total if `needs_no_counts`.
    """
    statement = question.statement()
    since = statement.parameters.moment(question.span.start)
    return statement.ready(
        f"SELECT count() FROM (SELECT 1 FROM {statement.issues} AND last_seen >= {since} LIMIT {limit:d})"
    )


def counts_while_paging(question: Question) -> bool:
    """Whether one pass over the events finds page and counts.

    It does if events have to be read anyway, and the trend is in the range.
    """
    if question.level != "events":
        return False
    window = trend_window(question.span, question.now_ms)
    return question.span.start <= window.start + UNIT_MS[trend_unit(question.span, question.now_ms)]


def counted_page(question: Question, sort: Sort, limit: int, cursor: IssueCursor | None) -> Sql:
    """Sort key, total, id and fingerprints of a page of issues, up to one more than the limit.

    The issues have events in range and query.
    """
    statement = question.statement()
    counts = by_fingerprint(statement, users=sort in {"users", "priority"})
    if sort == "trend":
        counts = _with_halves(statement, counts)
    return _statement(statement, "any(members)", counts, sort, limit, cursor)


def page_with_counts(question: Question, sort: Sort, limit: int, cursor: IssueCursor | None) -> Sql:
    """Sort key, total, id and `COUNTS` of such a page; see `counts_while_paging`."""
    statement = question.statement()
    counts = from_events(statement, "fingerprint", "")
    if sort == "trend":
        newer = f"bucket >= {_middle(statement)}"
        counts = (
            f"SELECT *, if({newer}, in_trend, 0) AS newer, if({newer}, 0, in_trend) AS older FROM ({counts})"
        )
    return _statement(statement, COUNTS, counts, sort, limit, cursor)


def rows_by_id(question: Question, issues: Sequence[int]) -> Sql:
    """`ISSUE_COLUMNS` of the issues, unordered."""
    statement = question.statement()
    return statement.ready(
        f"SELECT {ISSUE_COLUMNS} FROM {statement.issues} AND issue_id IN {statement.numbers(issues)}"
    )


def _statement(
    statement: Statement, columns: str, counts: str, sort: Sort, limit: int, cursor: IssueCursor | None
) -> Sql:
    """Sort key, total, id and `columns` of the first issues in an order.

    `counts` selects fingerprints and the values that order them. The total is that of the first page, else 0.
    """
    # Free after grouping; later pages leave out the issues of earlier ones.
    total = "count() OVER ()" if cursor is None else "0"
    ranked = f", {rank(statement.scope)} AS rank" if sort == "priority" else ""
    if sort in {"users", "priority"}:
        ranked += ", events AS all_events, users AS all_users"
    issues = (
        "SELECT issue_id, arrayJoin(fingerprints) AS fingerprint, fingerprints AS members, first_seen, last_seen"
        f"{ranked} FROM {statement.issues}"
    )
    return statement.ready(
        f"SELECT {_KEYS[sort]} AS key, {total}, issue_id, {columns} FROM ({counts}) AS counted"
        f" INNER JOIN ({issues}) AS issue USING (fingerprint) GROUP BY issue_id"
        f" HAVING sum(n) > 0 AND {_after(statement, cursor)} ORDER BY key DESC, issue_id DESC LIMIT {limit + 1:d}"
    )


def _with_halves(statement: Statement, counts: str) -> str:
    question = statement.question
    unit, window = trend_unit(question.span, question.now_ms), trend_window(question.span, question.now_ms)
    newer = f"bucket >= {_middle(statement)}"
    return (
        f"SELECT fingerprint, n, toUInt64(0) AS newer, toUInt64(0) AS older FROM ({counts}) UNION ALL"
        f" SELECT fingerprint, toUInt64(0) AS n, if({newer}, many, 0) AS newer, if({newer}, 0, many) AS older"
        f" FROM (SELECT fingerprint, bucket, n AS many FROM ({by_bucket(statement, window, unit)}))"
    )


def _middle(statement: Statement) -> str:
    """The start of the newer half of the trend (Unix ms)."""
    span, now_ms = statement.question.span, statement.question.now_ms
    unit, window = trend_unit(span, now_ms), trend_window(span, now_ms)
    assert window.end is not None
    middle = window.end - (window.end - window.start) // UNIT_MS[unit] // 2 * UNIT_MS[unit]
    return statement.parameters.add(middle, "Int64")


def _after(statement: Statement, cursor: IssueCursor | None) -> str:
    """The condition that no earlier page had the issue.

    It is by id while the cursor lists all issues, because keys change.
    """
    if cursor is None:
        return "1"
    if cursor.issues is not None:
        return f"issue_id NOT IN {statement.numbers(cursor.issues)}"
    key = statement.parameters.add(cursor.key, "Int64")
    issue = statement.parameters.add(parse_hex64(cursor.issue), "UInt64")
    return f"(key < {key} OR (key = {key} AND issue_id < {issue}))"
