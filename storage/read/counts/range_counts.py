"""Counts of events and users by issue, read from the smallest tables that together cover the exact range."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from schemas.read_api import Interval
from schemas.times import DAY_MS, HOUR_MS
from storage.read.execute import Sql
from storage.read.issue_rows import RangeCounts
from storage.read.query.question import Question, Statement
from storage.read.query.ranges import UNIT_MS, Range, cut, trend_counts, trend_unit, trend_window, whole
from storage.read.reader import Session

USERS_STATE: Final = "uniqCombinedStateIf(12)(user_hash, user_hash != 0)"
USERS_MERGED: Final = "least(sum(n), uniqCombinedMerge(12)(users))"
"""An estimate, capped by the number of events."""
COUNTS: Final = f"sum(n), {USERS_MERGED}, groupArrayIf((bucket, in_trend), in_trend > 0)"
"""Events, users, and pairs of a unit's start (Unix ms) and its events, from rows of `from_events`."""
DAY_START: Final = "toInt64(toUnixTimestamp(toDateTime(day, 'UTC'))) * 1000"
HOUR_START: Final = "toInt64(toUnixTimestamp(hour)) * 1000"


async def count_issues(
    session: Session, question: Question, fingerprints: Mapping[int, Sequence[int]]
) -> Mapping[int, RangeCounts]:
    """The counts of each issue, given by its fingerprints, in the question's range and query."""
    return read_counts(
        question, await session.rows(issue_counts(question, fingerprints)) if fingerprints else ()
    )


def read_counts(question: Question, rows: Sequence[Sequence[Any]]) -> Mapping[int, RangeCounts]:
    """Rows of issue and `COUNTS` as counts by issue; 0 for all other issues."""
    counts: dict[int, RangeCounts] = defaultdict(
        lambda: RangeCounts(trend=tuple(trend_counts({}, question.span, question.now_ms)))
    )
    for issue, events, users, buckets in rows:
        trend: Counter[int] = Counter()
        for bucket, count in buckets:
            trend[bucket] += count
        counts[issue] = RangeCounts(events, users, tuple(trend_counts(trend, question.span, question.now_ms)))
    return counts


def by_fingerprint(statement: Statement, users: bool) -> str:
    """SELECTs joined by UNION ALL with columns fingerprint, n and optionally states of users.

    Fingerprints may repeat.
    """
    question = statement.question
    extra = ", users" if users else ""
    if question.level == "events":
        return _events(statement, question.span, users)
    pieces = cut(question.span, HOUR_MS if question.level == "rollup" else DAY_MS)
    table, event = _day_table(statement)
    selects = [
        f"SELECT fingerprint, n{extra} FROM {table} WHERE {statement.project}"
        f" AND {statement.within('day', span, 'day')}{event}"
        for span in pieces.days
    ]
    selects += [
        f"SELECT fingerprint, n{extra} FROM issue_hour WHERE {statement.project}"
        f" AND {statement.within('hour', span, 'hour')}"
        for span in pieces.hours
    ]
    selects += [_events(statement, span, users) for span in pieces.edges]
    return " UNION ALL ".join(selects)


def by_bucket(statement: Statement, span: Range, unit: Interval) -> str:
    """A SELECT with columns fingerprint, bucket (start of the unit, Unix ms) and n.

    `span` consists of whole units.
    """
    level = statement.question.level
    if unit == "day" and level != "events":
        table, event = _day_table(statement)
        return (
            f"SELECT fingerprint, {DAY_START} AS bucket, n FROM {table}"
            f" WHERE {statement.project} AND {statement.within('day', span, 'day')}{event}"
        )
    if unit == "hour" and level == "rollup":
        return (
            f"SELECT fingerprint, {HOUR_START} AS bucket, n FROM issue_hour"
            f" WHERE {statement.project} AND {statement.within('hour', span, 'hour')}"
        )
    return (
        f"SELECT fingerprint, {bucket_of(unit)} AS bucket, count() AS n FROM events WHERE {statement.project}"
        f" AND {statement.within('ts', span)} AND {statement.event} GROUP BY fingerprint, bucket"
    )


def bucket_of(unit: Interval) -> str:
    """The start (Unix ms) of the unit that contains an event."""
    return f"intDiv(toUnixTimestamp64Milli(ts), {UNIT_MS[unit]}) * {UNIT_MS[unit]}"


def issue_counts(question: Question, members: Mapping[int, Sequence[int]]) -> Sql:
    """Issue and `COUNTS` of issues, given by their fingerprints.

    One pass reads the smallest sufficient tables.
    """
    statement = question.statement()
    pairs = [(fingerprint, issue) for issue, group in members.items() for fingerprint in group]
    fingerprints = statement.numbers([fingerprint for fingerprint, _ in pairs])
    issues = statement.numbers([issue for _, issue in pairs])
    issue = f"transform(fingerprint, {fingerprints}, {issues}, toUInt64(0))"
    narrowed = f" AND fingerprint IN {fingerprints}"
    unit = trend_unit(question.span, question.now_ms)
    if question.level == "events" or (question.level == "deployment" and unit == "hour"):
        counts = from_events(statement, f"{issue} AS issue", narrowed)
        return statement.ready(f"SELECT issue, {COUNTS} FROM ({counts}) GROUP BY issue")
    # If the trend is within the range, every row is.
    window = trend_window(question.span, question.now_ms)
    trend_inside = question.span.around(window) == question.span
    counts = " UNION ALL ".join(_pieces(statement, unit, narrowed, trend_inside))
    # Each page plans its statement afresh, and each name and function adds to a planning time as long as the
    # read itself.
    events, users = (
        ("sum(n)", "uniqCombinedMerge(12)(users)")
        if trend_inside
        else ("sumIf(n, inside)", "uniqCombinedMergeIf(12)(users, inside)")
    )
    # A row may contain a difference that wrapped (`storage.tables.rollups.difference`); signed, it adds up in
    # Python too.
    return statement.ready(
        f"SELECT {issue} AS issue, {events} AS events, least(events, {users}), groupArray((bucket, toInt64(n)))"
        f" FROM ({counts}) GROUP BY issue"
    )


def from_events(statement: Statement, key: str, narrowed: str) -> str:
    """A SELECT from events: key, bucket (Unix ms), n and states of users in the range, and `in_trend`.

    `in_trend` counts the events in the trend.
    """
    span, now_ms = statement.question.span, statement.question.now_ms
    unit, window = trend_unit(span, now_ms), trend_window(span, now_ms)
    inside, in_trend = statement.within("ts", span), statement.within("ts", window)
    names = key.rpartition(" AS ")[2]
    return (
        f"SELECT {key}, {bucket_of(unit)} AS bucket, countIf({inside}) AS n, countIf({in_trend}) AS in_trend,"
        f" uniqCombinedStateIf(12)(user_hash, user_hash != 0 AND {inside}) AS users"
        f" FROM events WHERE {statement.project}"
        f" AND {statement.within('ts', span.around(window))}{narrowed} AND {statement.event} GROUP BY {names}, bucket"
    )


def _events(statement: Statement, span: Range, users: bool) -> str:
    extra = f", {USERS_STATE} AS users" if users else ""
    return (
        f"SELECT fingerprint, count() AS n{extra} FROM events WHERE {statement.project}"
        f" AND {statement.within('ts', span)} AND {statement.event} GROUP BY fingerprint"
    )


def _day_table(statement: Statement) -> tuple[str, str]:
    """The table of daily counts, and the query's condition on its rows."""
    if statement.question.level == "rollup":
        return "issue_day", ""
    return "issue_day_er", f" AND {statement.event}"


def _pieces(statement: Statement, unit: Interval, narrowed: str, trend_inside: bool) -> Iterator[str]:
    """SELECTs: fingerprint, bucket (Unix ms, -1 outside the trend), n and users.

    Unless `trend_inside`, they also have `inside` (the range).
    """
    question = statement.question
    no_trend = "toInt64(-1) AS bucket"
    inside = "" if trend_inside else ", 1 AS inside"
    if unit == "hour":
        inner, edges = whole(question.span, HOUR_MS)
        yield _from_rollup(statement, unit, "issue_hour", inner, narrowed, trend_inside)
    else:
        pieces = cut(question.span, HOUR_MS if question.level == "rollup" else DAY_MS)
        table, event = _day_table(statement)
        days = pieces.days[0] if pieces.days else None
        yield _from_rollup(statement, unit, table, days, narrowed + event, trend_inside)
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
    statement: Statement, unit: Interval, table: str, span: Range | None, narrowed: str, trend_inside: bool
) -> str:
    """The whole units of the range, if any, and of the trend."""
    column, start = ("hour", HOUR_START) if unit == "hour" else ("day", DAY_START)
    window = trend_window(statement.question.span, statement.question.now_ms)
    around = window if span is None else window.around(span)
    inside = ""
    if not trend_inside:
        inside = f", {'0' if span is None else statement.within(column, span, unit)} AS inside"
    return (
        f"SELECT fingerprint, {start} AS bucket, n, users{inside}"
        f" FROM {table} WHERE {statement.project} AND {statement.within(column, around, unit)}{narrowed}"
    )
