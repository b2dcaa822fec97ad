"""Statements of the issue list: which issues stand on a page, and in which order."""

from collections.abc import Sequence
from typing import Final

from schemas.ids import parse_hex64
from storage.reader.answers import Sort
from storage.reader.counts import UNIT_MS, USERS_MERGED, by_bucket, by_fingerprint
from storage.reader.cursors import IssueCursor
from storage.reader.figures import FIGURES, by_event
from storage.reader.issue_rows import COLUMNS
from storage.reader.parameters import Sql
from storage.reader.question import Question, Statement
from storage.reader.trend import trend_unit, trend_window

NEWEST: Final = 150
"""Issues that are counted to find a page of those with events in an environment or release."""
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
    """Key and `COLUMNS` of a page in the order of a time of the issue's, one more than the limit.

    All of them where `needs_no_count` says so; else each may be of one without an event in range and query.
    """
    statement = question.statement()
    since = statement.parameters.moment(question.span.start)
    return statement.ready(
        f"SELECT toUnixTimestamp64Milli({_SEEN[sort]}) AS key, {COLUMNS} FROM {statement.issues} AND last_seen >= {since}"
        f" AND {_after(statement, cursor)} ORDER BY key DESC, issue_id DESC LIMIT {limit + 1:d}"
    )


def tries_newest(question: Question, sort: Sort) -> bool:
    """Whether the page is most likely among the `NEWEST` first issues: a filter by environment or release leaves many of them."""
    return sort in _SEEN and question.level == "place"


def needs_one_look(question: Question) -> bool:
    """Whether one look at the events finds page and figures: where they have to be read anyway, and the trend lies in the range."""
    if question.level != "events":
        return False
    window = trend_window(question.span, question.now_ms)
    return question.span.start <= window.start + UNIT_MS[trend_unit(question.span, question.now_ms)]


def counted_page(question: Question, sort: Sort, limit: int, cursor: IssueCursor | None) -> Sql:
    """Key, id and fingerprints of a page of issues with events in range and query, one more than the limit."""
    statement = question.statement()
    counts = by_fingerprint(statement, users=sort == "users")
    if sort == "trend":
        counts = _with_halves(statement, counts)
    return _page(statement, "any(members)", counts, sort, limit, cursor)


def page_with_figures(question: Question, sort: Sort, limit: int, cursor: IssueCursor | None) -> Sql:
    """Key and id of such a page, and the rest of a row of `figures.of_issues`; see `needs_one_look`."""
    statement = question.statement()
    counts = by_event(statement, "fingerprint", "")
    if sort == "trend":
        newer = f"bucket >= {_middle(statement)}"
        counts = f"SELECT *, if({newer}, many, 0) AS newer, if({newer}, 0, many) AS older FROM ({counts})"
    return _page(statement, FIGURES, counts, sort, limit, cursor)


def rows_by_id(question: Question, issues: Sequence[int]) -> Sql:
    """`COLUMNS` of the issues, in no order."""
    statement = question.statement()
    return statement.ready(
        f"SELECT {COLUMNS} FROM {statement.issues} AND issue_id IN {statement.numbers(list(issues))}"
    )


def _page(
    statement: Statement, more: str, counts: str, sort: Sort, limit: int, cursor: IssueCursor | None
) -> Sql:
    """Key, id and `more` of the first issues in an order; `counts` has fingerprints with what they are ordered by."""
    found = (
        "SELECT issue_id, arrayJoin(fingerprints) AS fingerprint, fingerprints AS members, first_seen, last_seen"
        f" FROM {statement.issues}"
    )
    return statement.ready(
        f"SELECT {_KEYS[sort]} AS key, issue_id, {more} FROM ({counts}) AS counted"
        f" INNER JOIN ({found}) AS issue USING (fingerprint) GROUP BY issue_id"
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
    """Where the newer half of the trend begins (Unix ms)."""
    span, now_ms = statement.question.span, statement.question.now_ms
    unit, window = trend_unit(span, now_ms), trend_window(span, now_ms)
    assert window.end is not None
    middle = window.end - (window.end - window.start) // UNIT_MS[unit] // 2 * UNIT_MS[unit]
    return statement.parameters.add(middle, "Int64")


def _after(statement: Statement, cursor: IssueCursor | None) -> str:
    """The condition that an issue wasn't given yet: by name while the cursor knows all that were, since keys climb and fall."""
    if cursor is None:
        return "1"
    if cursor.issues is not None:
        return f"issue_id NOT IN {statement.numbers(cursor.issues)}"
    key = statement.parameters.add(cursor.key, "Int64")
    issue = statement.parameters.add(parse_hex64(cursor.issue), "UInt64")
    return f"(key < {key} OR (key = {key} AND issue_id < {issue}))"
