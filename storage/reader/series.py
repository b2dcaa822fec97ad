"""Counts by minute, hour or day."""

from collections.abc import Iterable, Sequence
from typing import Final, Literal

from query.tree import EVERYTHING
from schemas.times import iso
from storage.errors import BadQuery
from storage.reader.answers import Interval, Point, Series
from storage.reader.counts import UNIT_MS, USERS_MERGED, USERS_STATE, bucket_of
from storage.reader.parameters import Sql
from storage.reader.query_sql import event_condition
from storage.reader.question import Question, Statement
from storage.reader.ranges import DAY_MS, HOUR_MS, Range, cut, floor, whole

MAX_POINTS: Final = 2000
_STARTS: Final = {
    ("day", "day"): "toInt64(toUnixTimestamp(toDateTime(day, 'UTC'))) * 1000",
    ("hour", "day"): f"intDiv(toInt64(toUnixTimestamp(hour)) * 1000, {DAY_MS}) * {DAY_MS}",
    ("hour", "hour"): "toInt64(toUnixTimestamp(hour)) * 1000",
}
"""Start of an interval (Unix ms) by column and interval."""
_Stretch = tuple[str, Literal["day", "hour"], Range]
"""Table, its column of time, and the part of a range that is read there."""


def chosen_interval(interval: Interval | None, span: Range, now_ms: int) -> Interval:
    """The asked interval, or one that suits the range. Raises BadQuery where it makes too many points."""
    length = span.length(now_ms)
    if interval is None:
        interval = "minute" if length <= 2 * HOUR_MS else "hour" if length <= 7 * DAY_MS + HOUR_MS else "day"
    if interval not in UNIT_MS:
        raise BadQuery("interval", f"one of {', '.join(UNIT_MS)}")
    if length // UNIT_MS[interval] > MAX_POINTS:
        raise BadQuery(
            "interval", f"at most {MAX_POINTS} intervals: ask for a shorter range or a longer interval"
        )
    return interval


def counts(question: Question, fingerprints: Sequence[int] | None, interval: Interval) -> Sql:
    """Start of an interval (Unix ms), events and users; only intervals with events."""
    statement = question.statement()
    narrowed = _narrowed(statement, fingerprints)
    selects = " UNION ALL ".join(_selects(statement, interval, narrowed))
    return statement.ready(
        f"SELECT bucket, sum(n), {USERS_MERGED} FROM ({selects}) GROUP BY bucket ORDER BY bucket"
    )


def filled(rows: Iterable[Sequence[int]], span: Range, interval: Interval, now_ms: int) -> Series:
    """The rows of `counts` as a series without gaps."""
    found = {int(bucket): (int(events), int(users)) for bucket, events, users in rows}
    size = UNIT_MS[interval]
    first = floor(span.start, size)
    last = max(floor(now_ms, size), *found, first) if span.end is None else floor(span.end - 1, size)
    return Series(
        series=[Point(iso(start), *found.get(start, (0, 0))) for start in range(first, last + 1, size)],
        interval=interval,
    )


def _narrowed(statement: Statement, fingerprints: Sequence[int] | None) -> str:
    """A condition on fingerprints alone, empty for a whole project."""
    conditions = []
    if fingerprints is not None:
        conditions.append(f"fingerprint IN {statement.numbers(list(fingerprints))}")
    if statement.question.of_issue != EVERYTHING:
        conditions.append(event_condition(statement.question.of_issue, statement.scope))
    return "".join(f" AND {condition}" for condition in conditions)


def _selects(statement: Statement, interval: Interval, narrowed: str) -> Iterable[str]:
    question = statement.question
    level = question.level
    by_place = level == "place" and interval == "day"
    if interval == "minute" or (level != "rollup" and not by_place):
        return [_from_events(statement, question.span, interval, narrowed)]
    smallest = DAY_MS if by_place else HOUR_MS
    pieces = cut(question.span, smallest)
    selects = [_from_events(statement, span, interval, narrowed) for span in pieces.edges]
    event = f" AND {statement.event}" if by_place else ""
    selects += [
        f"SELECT {_STARTS[column, interval]} AS bucket, n, users FROM {table} WHERE {statement.project}"
        f" AND {statement.within(column, span, column)}{narrowed}{event}"
        for table, column, span in _stretches(question, interval, by_place, bool(narrowed))
    ]
    return selects


def _stretches(question: Question, interval: Interval, by_place: bool, narrowed: bool) -> list[_Stretch]:
    """Which tables have the whole units of a range; as few as can be, because each is planned by itself."""
    if interval == "day" and (by_place or narrowed):
        pieces = cut(question.span, DAY_MS if by_place else HOUR_MS)
        days = "issue_day_er" if by_place else "issue_day"
        return [
            *((days, "day", span) for span in pieces.days),
            *(("issue_hour", "hour", span) for span in pieces.hours),
        ]
    inner, _ = whole(question.span, HOUR_MS)
    return [("issue_hour" if narrowed else "project_hour", "hour", inner)] if inner else []


def _from_events(statement: Statement, span: Range, interval: Interval, narrowed: str) -> str:
    return (
        f"SELECT {bucket_of('ts', interval)} AS bucket, count() AS n, {USERS_STATE} AS users FROM events"
        f" WHERE {statement.project} AND {statement.within('ts', span)}{narrowed} AND {statement.event} GROUP BY bucket"
    )
