"""Statements about single events: pages of them, one by its id, the first and last, and the neighbours."""

from collections.abc import Iterator, Sequence
from typing import Final, Literal

from storage.query.parameters import Sql
from storage.reader.cursors import EventCursor
from storage.reader.event_rows import COLUMNS, StoredEvent
from storage.reader.question import Question, Statement
from storage.reader.ranges import DAY_MS, HOUR_MS, Range

_WINDOWS: Final = (6 * HOUR_MS, 3 * DAY_MS)


def page(
    question: Question, fingerprints: Sequence[int] | None, limit: int, cursor: EventCursor | None
) -> Sql:
    """`COLUMNS` of the newest events in range and query, one more than the limit; of some fingerprints or of all."""
    statement = question.statement()
    conditions = [statement.project, statement.within("ts", question.span), statement.whole]
    if fingerprints is not None:
        conditions.append(_of(statement, fingerprints))
    if cursor is not None:
        conditions.append(_beside(statement, "<", cursor.time, int(cursor.event, 16)))
    return statement.ready(
        f"SELECT {COLUMNS} FROM events WHERE {' AND '.join(conditions)} ORDER BY ts DESC, id DESC LIMIT {limit + 1:d}"
    )


def windows(question: Question, cursor: EventCursor | None) -> Iterator[Range]:
    """The newest hours of a range, its newest days, and the whole of it.

    The events of a project aren't kept in the order of time, so that its newest ones are cheap to find only in a short range.
    """
    span = question.span
    newest = question.now_ms if cursor is None and span.end is None else cursor.time if cursor else span.end
    assert newest is not None
    for length in _WINDOWS:
        if newest - length > span.start:
            yield Range(newest - length, span.end)
    yield span


def payload_by_id(question: Question, event: int) -> Sql:
    """Time (Unix ms) and payload of an event, found by its key."""
    statement = question.statement()
    return statement.ready(
        f"SELECT toUnixTimestamp64Milli(ts), payload FROM payloads WHERE {statement.project}"
        f" AND id = {statement.parameters.add(event, 'UInt128')} LIMIT 1",
        raw=("payload",),
    )


def payloads_by_id(question: Question, events: Sequence[int]) -> Sql:
    """Id and payload of events, of those whose payload is still kept."""
    statement = question.statement()
    ids = statement.parameters.add(list(events), "Array(UInt128)")
    return statement.ready(
        f"SELECT id, payload FROM payloads WHERE {statement.project} AND id IN {ids}", raw=("payload",)
    )


def event_by_id(question: Question, event: int, time: int | None) -> Sql:
    """`COLUMNS` of an event; its time, where known, leaves one week of the table to look at."""
    statement = question.statement()
    at = "" if time is None else f" AND ts = {statement.parameters.moment(time)}"
    return statement.ready(
        f"SELECT {COLUMNS} FROM events WHERE {statement.project}{at}"
        f" AND id = {statement.parameters.add(event, 'UInt128')} LIMIT 1"
    )


def outermost(question: Question, fingerprints: Sequence[int] | None, newest: bool) -> Sql:
    """`COLUMNS` of the newest or the oldest event of some fingerprints, or of the project."""
    statement = question.statement()
    conditions = [statement.project]
    if fingerprints is not None:
        conditions.append(_of(statement, fingerprints))
    else:
        edge = "max(hour)" if newest else "min(hour) + INTERVAL 1 HOUR"
        # Of the column's own type: compared with a DateTime, pruning by DateTime64 loses a second before midnight (26.9).
        bound = f"SELECT toDateTime64({edge}, 3, 'UTC') FROM project_hour WHERE {statement.project}"
        conditions.append(f"ts {'>=' if newest else '<'} ({bound})")
    order = "DESC" if newest else "ASC"
    return statement.ready(
        f"SELECT {COLUMNS} FROM events WHERE {' AND '.join(conditions)} ORDER BY ts {order}, id {order} LIMIT 1"
    )


def neighbour(
    question: Question, fingerprints: Sequence[int], event: StoredEvent, which: Literal["previous", "next"]
) -> Sql:
    """The id of the event just before or after another, among those of some fingerprints."""
    statement = question.statement()
    sign, order = ("<", "DESC") if which == "previous" else (">", "ASC")
    return statement.ready(
        f"SELECT id FROM events WHERE {statement.project} AND {_of(statement, fingerprints)}"
        f" AND {_beside(statement, sign, event.time, event.id)} ORDER BY ts {order}, id {order} LIMIT 1"
    )


def _of(statement: Statement, fingerprints: Sequence[int]) -> str:
    # One value lets ClickHouse read in the order of the key.
    if len(fingerprints) == 1:
        return f"fingerprint = {statement.parameters.add(fingerprints[0], 'UInt64')}"
    return f"fingerprint IN {statement.numbers(list(fingerprints))}"


def _beside(statement: Statement, sign: str, time: int, event: int) -> str:
    moment = statement.parameters.moment(time)
    number = statement.parameters.add(event, "UInt128")
    return f"ts {sign}= {moment} AND (ts {sign} {moment} OR id {sign} {number})"
