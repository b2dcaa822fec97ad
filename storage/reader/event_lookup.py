"""Statements about one event: by its id, the first and the last of an issue or project, and the neighbours."""

from collections.abc import Sequence
from typing import Final

from storage.reader.event_rows import BEYOND, PLACED, ErrorLocation
from storage.reader.parameters import Sql
from storage.reader.question import Question, Statement
from storage.reader.ranges import DAY_MS, Range

_VERSION_7: Final = 7


def likely_range(event: int) -> Range | None:
    """The days around the time that an id of version 7 carries: where its event most likely lies. None for other ids."""
    if event >> 76 & 0xF != _VERSION_7:
        return None
    made = event >> 80
    return Range(max(0, made - DAY_MS), made + DAY_MS)


def payload_by_id(question: Question, event: int, near: Range | None = None) -> Sql:
    """Time (Unix ms) and payload of an event, found by its key; in a range of times few parts have to be asked."""
    statement = question.statement()
    within = "" if near is None else f" AND {statement.within('ts', near)}"
    return statement.ready(
        f"SELECT toUnixTimestamp64Milli(ts), payload FROM payloads WHERE {statement.project}"
        f" AND id = {statement.parameters.add(event, 'UInt128')}{within} LIMIT 1",
        raw=("payload",),
    )


def event_by_id(question: Question, event: int, time: int | None) -> Sql:
    """`PLACED` of an event; its time, where known, leaves one week of the table to look at."""
    statement = question.statement()
    at = "" if time is None else f" AND ts = {statement.parameters.moment(time)}"
    return statement.ready(
        f"SELECT {PLACED} FROM events WHERE {statement.project}{at}"
        f" AND id = {statement.parameters.add(event, 'UInt128')} LIMIT 1"
    )


def outermost(
    question: Question, fingerprints: Sequence[int] | None, newest: bool, beyond: int | None = None
) -> Sql:
    """`PLACED` of the newest or the oldest event of some fingerprints, or of the project.

    `beyond` (Unix ms) leaves out what is older or newer: what is found then is the outermost, and there may be nothing.
    """
    statement = question.statement()
    conditions = [statement.project]
    if fingerprints is not None:
        conditions.append(of_fingerprints(statement, fingerprints))
    else:
        edge = "max(hour)" if newest else "min(hour) + INTERVAL 1 HOUR"
        # Of the column's own type: compared with a DateTime, pruning by DateTime64 loses a second before midnight (26.9).
        bound = f"SELECT toDateTime64({edge}, 3, 'UTC') FROM project_hour WHERE {statement.project}"
        conditions.append(f"ts {'>=' if newest else '<'} ({bound})")
    if beyond is not None:
        conditions.append(f"ts {'>=' if newest else '<='} {statement.parameters.moment(beyond)}")
    order = "DESC" if newest else "ASC"
    return statement.ready(
        f"SELECT {PLACED} FROM events WHERE {' AND '.join(conditions)} ORDER BY ts {order}, id {order} LIMIT 1"
    )


def around(question: Question, fingerprints: Sequence[int], event: ErrorLocation, near: Range) -> Sql:
    """One row: ids of the events just before and after another in a range (or None), and a list with `BEYOND` of the event itself, if it is one of these.

    Every event of the range is looked at, so it should be short.
    """
    statement = question.statement()
    at = f"({statement.parameters.moment(event.time)}, {statement.parameters.add(event.id, 'UInt128')})"
    # One look costs half of what two that each stop at the first row do: most of a short statement is its plan.
    return statement.ready(
        f"SELECT argMaxOrNullIf(id, (ts, id), (ts, id) < {at}), argMinOrNullIf(id, (ts, id), (ts, id) > {at}),"
        f" groupArrayIf(1)(({BEYOND}), (ts, id) = {at}) FROM events"
        f" WHERE {statement.project} AND {of_fingerprints(statement, fingerprints)} AND {statement.within('ts', near)}"
    )


def neighbours(question: Question, fingerprints: Sequence[int], event: ErrorLocation) -> Sql:
    """-1 and the id of the event just before another, 1 and that of the one after, among all those of some fingerprints."""
    statement = question.statement()
    of = f"{statement.project} AND {of_fingerprints(statement, fingerprints)}"
    sides = (
        f"(SELECT {side} AS side, id FROM events WHERE {of} AND {beside(statement, sign, event.time, event.id)}"
        f" ORDER BY ts {order}, id {order} LIMIT 1)"
        for side, sign, order in ((-1, "<", "DESC"), (1, ">", "ASC"))
    )
    return statement.ready(" UNION ALL ".join(sides))


def of_fingerprints(statement: Statement, fingerprints: Sequence[int]) -> str:
    """The condition that an event is of one of the fingerprints."""
    # One value lets ClickHouse read in the order of the key.
    if len(fingerprints) == 1:
        return f"fingerprint = {statement.parameters.add(fingerprints[0], 'UInt64')}"
    return f"fingerprint IN {statement.numbers(list(fingerprints))}"


def beside(statement: Statement, sign: str, time: int, event: int) -> str:
    """The condition that an event lies before (`<`) or after (`>`) another, by time and id."""
    moment = statement.parameters.moment(time)
    number = statement.parameters.add(event, "UInt128")
    return f"ts {sign}= {moment} AND (ts {sign} {moment} OR id {sign} {number})"
