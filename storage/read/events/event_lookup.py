"""Statements about one event.

They find an event by id, the newest or oldest of an issue or project, the previous and next, and its merge.
"""

from collections.abc import Sequence

from schemas.ids import hex64
from storage.read.events.event_rows import ATTRIBUTES, HEADER, EventHeader, beside
from storage.read.execute import Sql
from storage.read.query.question import Question
from storage.read.query.ranges import Range


def event_by_id(question: Question, event: int, time: int | None) -> Sql:
    """`HEADER` of an event; its time, if known, limits the read to one week of the table."""
    statement = question.statement()
    at = "" if time is None else f" AND ts = {statement.parameters.moment(time)}"
    return statement.ready(
        f"SELECT {HEADER} FROM events WHERE {statement.project}{at}"
        f" AND id = {statement.parameters.add(event, 'UInt128')} LIMIT 1"
    )


def newest_or_oldest(
    question: Question, fingerprints: Sequence[int] | None, newest: bool, bound: int | None = None
) -> Sql:
    """`HEADER` of the newest or the oldest event of fingerprints, or of the project, that matches the query.

    Only events from `bound` (Unix ms) on are read, or up to it for the oldest; there may be none.
    """
    statement = question.statement()
    conditions = [statement.project, statement.event]
    if fingerprints is not None:
        conditions.append(statement.of_fingerprints(fingerprints))
    else:
        edge = "max(hour)" if newest else "min(hour) + INTERVAL 1 HOUR"
        # Of the column's own type: compared with a DateTime, pruning by DateTime64 loses a second before
        # midnight (26.9).
        hour = f"SELECT toDateTime64({edge}, 3, 'UTC') FROM project_hour WHERE {statement.project}"
        conditions.append(f"ts {'>=' if newest else '<'} ({hour})")
    if bound is not None:
        conditions.append(f"ts {'>=' if newest else '<='} {statement.parameters.moment(bound)}")
    order = "DESC" if newest else "ASC"
    return statement.ready(
        f"SELECT {HEADER} FROM events WHERE {' AND '.join(conditions)} ORDER BY ts {order}, id {order} LIMIT 1"
    )


def nearby(question: Question, fingerprints: Sequence[int], event: EventHeader, near: Range) -> Sql:
    """One row: ids of the previous and next event in a range, and a list with `ATTRIBUTES` of the event.

    The previous and next event match the query; an id is None if there is none. The list is empty if the
    event has none of the fingerprints. All events of the range are read, so it should be short.
    """
    statement = question.statement()
    ts, number = statement.parameters.moment(event.time), statement.parameters.add(event.id, "UInt128")
    at = f"({ts}, {number})"
    # Not `(ts, id) = at`: over several servers that is written in two ways, and its column not found.
    # One pass takes half the time of two that each stop at the first row: planning dominates short statements.
    return statement.ready(
        f"SELECT argMaxOrNullIf(id, (ts, id), (ts, id) < {at} AND {statement.event}),"
        f" argMinOrNullIf(id, (ts, id), (ts, id) > {at} AND {statement.event}),"
        f" groupArrayIf(({ATTRIBUTES}), ts = {ts} AND id = {number}) FROM events"
        f" WHERE {statement.project} AND {statement.of_fingerprints(fingerprints)} AND {statement.within('ts', near)}"
    )


def neighbours(question: Question, fingerprints: Sequence[int], event: EventHeader) -> Sql:
    """-1 with the id of the previous event, 1 with the id of the next.

    They are among the events of some fingerprints that match the query.
    """
    statement = question.statement()
    of = f"{statement.project} AND {statement.of_fingerprints(fingerprints)} AND {statement.event}"
    sides = (
        f"(SELECT {side} AS side, id FROM events WHERE {of} AND {beside(statement, sign, event.time, event.id)}"
        f" ORDER BY ts {order}, id {order} LIMIT 1)"
        for side, sign, order in ((-1, "<", "DESC"), (1, ">", "ASC"))
    )
    return statement.ready(" UNION ALL ".join(sides))


def merge_of(question: Question, issue: int, fingerprint: int) -> Sql:
    """Author and time (Unix ms) of the last merge of a fingerprint into an issue."""
    statement = question.statement()
    name = statement.parameters.add(hex64(fingerprint), "String")
    return statement.ready(
        "SELECT by, toUnixTimestamp64Milli(at) FROM issue_activity FINAL"
        f" WHERE {statement.project} AND issue_id = {statement.parameters.add(issue, 'UInt64')} AND kind = 'merged'"
        f" AND has(JSONExtract(data, 'fingerprints', 'Array(String)'), {name}) ORDER BY at DESC, id DESC LIMIT 1"
    )
