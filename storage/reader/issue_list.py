"""Statements of the issue list: which issues stand on a page, in which order, and what range and query count of them."""

from collections.abc import Sequence
from typing import Final

from schemas.ids import parse_hex64
from storage.query.parameters import Sql
from storage.reader.answers import Sort
from storage.reader.counts import UNIT_MS, USERS_MERGED, bucket_of, by_bucket, by_fingerprint
from storage.reader.cursors import MARK, IssueCursor
from storage.reader.issue_rows import COLUMNS, IssueRow
from storage.reader.question import Question, Statement
from storage.reader.trend import trend_unit, trend_window

_SEEN: Final = {"lastSeen": "last_seen", "firstSeen": "first_seen"}
_KEYS: Final[dict[Sort, str]] = {
    "lastSeen": "toUnixTimestamp64Milli(any(last_seen))",
    "firstSeen": "toUnixTimestamp64Milli(any(first_seen))",
    "events": "toInt64(sum(n))",
    "users": f"toInt64({USERS_MERGED})",
    # How surprising the newer half of the trend is beside the older: the difference in standard deviations, in thousandths.
    "trend": "toInt64(round(1000 * (toInt64(sum(newer)) - toInt64(sum(older))) / sqrt(greatest(1, sum(newer) + sum(older)))))",
}


def needs_no_count(question: Question, sort: Sort) -> bool:
    """Whether `issues` alone tells the page: an issue last seen after the start has events in a range without an end."""
    return sort in _SEEN and question.level == "rollup" and question.span.end is None


def seen_page(question: Question, sort: Sort, limit: int, cursor: IssueCursor | None) -> Sql:
    """Key and `COLUMNS` of a page in the order of a time of the issue's, one more than the limit; see `needs_no_count`."""
    statement = question.statement()
    since = statement.parameters.moment(question.span.start)
    return statement.ready(
        f"SELECT toUnixTimestamp64Milli({_SEEN[sort]}) AS key, {COLUMNS} FROM {statement.issues} AND last_seen >= {since}"
        f" AND {_after(statement, cursor)} ORDER BY key DESC, issue_id DESC LIMIT {limit + 1:d}"
    )


def counted_page(question: Question, sort: Sort, limit: int, cursor: IssueCursor | None) -> Sql:
    """Key and id of a page of issues with events in range and query, one more than the limit."""
    statement = question.statement()
    counts = by_fingerprint(statement, users=sort == "users")
    if sort == "trend":
        counts = _with_halves(statement, counts)
    found = (
        "SELECT issue_id, arrayJoin(fingerprints) AS fingerprint, first_seen, last_seen"
        f" FROM {statement.issues}"
    )
    return statement.ready(
        f"SELECT {_KEYS[sort]} AS key, issue_id FROM ({counts}) AS counted"
        f" INNER JOIN ({found}) AS issue USING (fingerprint) GROUP BY issue_id"
        f" HAVING sum(n) > 0 AND {_after(statement, cursor)} ORDER BY key DESC, issue_id DESC LIMIT {limit + 1:d}"
    )


def rows_by_id(question: Question, issues: Sequence[int]) -> Sql:
    """`COLUMNS` of the issues, in no order."""
    statement = question.statement()
    return statement.ready(
        f"SELECT {COLUMNS} FROM {statement.issues} AND issue_id IN {statement.numbers(list(issues))}"
    )


def page_counts(question: Question, rows: Sequence[IssueRow]) -> Sql:
    """Issue, events and users of each issue in range and query."""
    statement = question.statement()
    issue, narrowed = _issue_of(statement, rows)
    return statement.ready(
        f"SELECT {issue} AS issue, sum(n), {USERS_MERGED} FROM ({by_fingerprint(statement, narrowed)}) GROUP BY issue"
    )


def page_trends(question: Question, rows: Sequence[IssueRow]) -> Sql:
    """Issue, start of a unit (Unix ms) and events in it, for what the query matches."""
    statement = question.statement()
    issue, narrowed = _issue_of(statement, rows)
    unit, window = trend_unit(question.span, question.now_ms), trend_window(question.span, question.now_ms)
    buckets = by_bucket(statement, window, unit, narrowed)
    return statement.ready(f"SELECT {issue} AS issue, bucket, sum(n) FROM ({buckets}) GROUP BY issue, bucket")


def page_figures(question: Question, rows: Sequence[IssueRow]) -> Sql:
    """Issue, events, users, and starts of units with their events: what `page_counts` and `page_trends` tell, by one look at the events."""
    statement = question.statement()
    issue, narrowed = _issue_of(statement, rows)
    span, now_ms = question.span, question.now_ms
    unit, window = trend_unit(span, now_ms), trend_window(span, now_ms)
    inside, shown = statement.within("ts", span), statement.within("ts", window)
    both = (
        f"SELECT {issue} AS issue, {bucket_of('ts', unit)} AS bucket, countIf({inside}) AS n, countIf({shown}) AS many,"
        f" uniqCombinedStateIf(12)(user_hash, user_hash != 0 AND {inside}) AS users FROM events WHERE {statement.project}"
        f" AND {statement.within('ts', span.around(window))} AND {narrowed} AND {statement.event} GROUP BY issue, bucket"
    )
    return statement.ready(
        f"SELECT issue, sum(n), {USERS_MERGED}, groupArrayIf((bucket, many), many > 0) FROM ({both}) GROUP BY issue"
    )


def _issue_of(statement: Statement, rows: Sequence[IssueRow]) -> tuple[str, str]:
    """The issue of a fingerprint, and the condition that it is one of the rows'."""
    pairs = [(fingerprint, row.issue_id) for row in rows for fingerprint in row.fingerprints]
    fingerprints = statement.numbers([fingerprint for fingerprint, _ in pairs])
    issues = statement.numbers([issue for _, issue in pairs])
    return f"transform(fingerprint, {fingerprints}, {issues}, toUInt64(0))", f"fingerprint IN {fingerprints}"


def _with_halves(statement: Statement, counts: str) -> str:
    question = statement.question
    unit, window = trend_unit(question.span, question.now_ms), trend_window(question.span, question.now_ms)
    assert window.end is not None
    middle = window.end - (window.end - window.start) // UNIT_MS[unit] // 2 * UNIT_MS[unit]
    newer = f"bucket >= {statement.parameters.add(middle, 'Int64')}"
    return (
        f"SELECT fingerprint, n, toUInt64(0) AS newer, toUInt64(0) AS older FROM ({counts}) UNION ALL"
        f" SELECT fingerprint, toUInt64(0) AS n, if({newer}, many, 0) AS newer, if({newer}, 0, many) AS older"
        f" FROM (SELECT fingerprint, bucket, n AS many FROM ({by_bucket(statement, window, unit)}))"
    )


def _after(statement: Statement, cursor: IssueCursor | None) -> str:
    if cursor is None:
        return "1"
    key = statement.parameters.add(cursor.key, "Int64")
    issue = statement.parameters.add(parse_hex64(cursor.issue), "UInt64")
    below = f"key < {key} OR (key = {key} AND issue_id < {issue})"
    if cursor.marks is None:
        return f"({below})"
    given = statement.parameters.add(cursor.marks, "Array(UInt32)")
    return f"({below} OR NOT has({given}, toUInt32(bitAnd(issue_id, {MARK}))))"
