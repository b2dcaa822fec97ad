"""Statements of what range and query count of issues that are known: events, users, and the small series beside each."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from storage.reader.counts import USERS_MERGED, USERS_STATE, Unit, bucket_of
from storage.reader.parameters import Sql
from storage.reader.question import Question, Statement
from storage.reader.ranges import DAY_MS, HOUR_MS, Range, cut, whole
from storage.reader.trend import trend_unit, trend_window

FIGURES: Final = f"sum(n), {USERS_MERGED}, groupArrayIf((bucket, many), many > 0)"
"""Events, users, and starts of units (Unix ms) with their events, of rows as `by_event` gives them."""
_START: Final[dict[Unit, tuple[str, str]]] = {
    "hour": ("hour", "toInt64(toUnixTimestamp(hour)) * 1000"),
    "day": ("day", "toInt64(toUnixTimestamp(toDateTime(day, 'UTC'))) * 1000"),
}


def of_issues(question: Question, members: Mapping[int, Sequence[int]]) -> Sql:
    """Issue and `FIGURES` of issues, given by the fingerprints of each, by one look at the smallest tables that know them."""
    statement = question.statement()
    pairs = [(fingerprint, issue) for issue, found in members.items() for fingerprint in found]
    fingerprints = statement.numbers([fingerprint for fingerprint, _ in pairs])
    issues = statement.numbers([issue for _, issue in pairs])
    issue, narrowed = (
        f"transform(fingerprint, {fingerprints}, {issues}, toUInt64(0))",
        f" AND fingerprint IN {fingerprints}",
    )
    unit = trend_unit(question.span, question.now_ms)
    if question.level == "events" or (question.level == "place" and unit == "hour"):
        counts = by_event(statement, f"{issue} AS issue", narrowed)
        return statement.ready(f"SELECT issue, {FIGURES} FROM ({counts}) GROUP BY issue")
    whole_range = _holds_trend(question)
    counts = " UNION ALL ".join(_pieces(statement, unit, narrowed, whole_range))
    # Each name that is resolved and each function is planned anew for every page, which costs as much as reading does.
    events, users = (
        ("sum(n)", "uniqCombinedMerge(12)(users)")
        if whole_range
        else ("sumIf(n, inside)", "uniqCombinedMergeIf(12)(users, inside)")
    )
    # A row may hold a difference that has wrapped (`storage.repair.rollups.difference`): signed, it adds up outside the database, too.
    return statement.ready(
        f"SELECT {issue} AS issue, {events} AS events, least(events, {users}), groupArray((bucket, toInt64(n)))"
        f" FROM ({counts}) GROUP BY issue"
    )


def by_event(statement: Statement, key: str, narrowed: str) -> str:
    """A SELECT from events with columns of the key, bucket (Unix ms), n and states of users in the range, and `many` in the trend."""
    span, now_ms = statement.question.span, statement.question.now_ms
    unit, window = trend_unit(span, now_ms), trend_window(span, now_ms)
    inside, shown = statement.within("ts", span), statement.within("ts", window)
    names = key.rpartition(" AS ")[2]
    return (
        f"SELECT {key}, {bucket_of('ts', unit)} AS bucket, countIf({inside}) AS n, countIf({shown}) AS many,"
        f" uniqCombinedStateIf(12)(user_hash, user_hash != 0 AND {inside}) AS users FROM events WHERE {statement.project}"
        f" AND {statement.within('ts', span.around(window))}{narrowed} AND {statement.event} GROUP BY {names}, bucket"
    )


def _holds_trend(question: Question) -> bool:
    """Whether the trend begins and ends within the range, so that there is nothing beside it to be told apart."""
    window = trend_window(question.span, question.now_ms)
    return question.span.around(window) == question.span


def _pieces(statement: Statement, unit: Unit, narrowed: str, whole_range: bool) -> Iterator[str]:
    """SELECTs with columns fingerprint, bucket (Unix ms, or -1 for what no trend shows), n, users and, unless told, whether a row lies in the range."""
    question = statement.question
    no_trend = "toInt64(-1) AS bucket"
    inside = "" if whole_range else ", 1 AS inside"
    if unit == "hour":
        inner, edges = whole(question.span, HOUR_MS)
        yield _from_rollup(statement, unit, "issue_hour", inner, narrowed, whole_range)
    else:
        pieces = cut(question.span, HOUR_MS if question.level == "rollup" else DAY_MS)
        table, event = (
            ("issue_day", "") if question.level == "rollup" else ("issue_day_er", f" AND {statement.event}")
        )
        days = pieces.days[0] if pieces.days else None
        yield _from_rollup(statement, unit, table, days, narrowed + event, whole_range)
        for span in pieces.hours:
            yield (
                f"SELECT fingerprint, {no_trend}, n, users{inside} FROM issue_hour"
                f" WHERE {statement.project} AND {statement.within('hour', span, 'hour')}{narrowed}"
            )
        edges = pieces.edges
    for span in edges:
        yield (
            f"SELECT fingerprint, {no_trend}, count() AS n, {USERS_STATE} AS users{inside}"
            f" FROM events WHERE {statement.project} AND {statement.within('ts', span)}{narrowed} AND {statement.event}"
            " GROUP BY fingerprint"
        )


def _from_rollup(
    statement: Statement, unit: Unit, table: str, span: Range | None, narrowed: str, whole_range: bool
) -> str:
    """The whole units of the range, if it has any, and those of the trend."""
    column, start = _START[unit]
    window = trend_window(statement.question.span, statement.question.now_ms)
    around = window if span is None else window.around(span)
    inside = ""
    if not whole_range:
        inside = f", {'0' if span is None else statement.within(column, span, unit)} AS inside"
    return (
        f"SELECT fingerprint, {start} AS bucket, n, users{inside}"
        f" FROM {table} WHERE {statement.project} AND {statement.within(column, around, unit)}{narrowed}"
    )
