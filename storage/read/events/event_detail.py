"""Reads of one event, with its payload, its issue and the previous and next event."""

import asyncio
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from schemas.ids import hex64, issue_id
from schemas.read_api import EventDetail, GroupingOf, MergedBy
from schemas.times import DAY_MS, HOUR_MS, iso
from storage.errors import DamagedPayload, NotFound
from storage.read.events.event_rows import (
    ATTRIBUTES,
    HEADER,
    EventHeader,
    before_or_after,
    event_number,
    event_text,
    readable,
)
from storage.read.events.payloads import likely_range, stored_payload
from storage.read.execute import Rows, Sql
from storage.read.issue_rows import IssueRow, issue_by_id, issue_number, issues_of
from storage.read.query.question import Question
from storage.read.query.ranges import Range
from storage.read.reader import ReadCall, Session

_RETRY_SECONDS: Final = (0.0, 0.05, 0.1, 0.2, 0.4)
_VISIBLE_AFTER_MS: Final = 300_000
NEAR_GAPS: Final = 8
BUSY_GAPS: Final = 64
"""Neighbours are searched first within these multiples of the issue's average gap; the larger one is capped
at a day."""
MIN_REACH_MS: Final = 60_000
_NEWEST: Final = {"latest": True, "oldest": False}


class _EventIssue(Struct, frozen=True):
    """The issue of an event and its grouping parts.

    `reach` (ms) is how far from the event its neighbours are searched first.
    """

    number: int
    fingerprints: Sequence[int]
    parts: Sequence[str]
    reach: int = HOUR_MS


_Payload = tuple[int, bytes] | None


class GetIssueEvent(ReadCall[EventDetail], frozen=True):
    """An event of an issue by its id, or `latest`, or `oldest`.

    These two and the neighbours are among the events that match the query.
    """

    issue: str
    event: str
    query: str = ""

    async def fetch(self, session: Session) -> EventDetail:
        """The event with its issue, and the previous and next event."""
        if self.event in _NEWEST:
            row = await session.issue(self.issue)
            question = session.question_ever(row.project_id, self.query)
            return await _newest_or_oldest(session, question, row, newest=_NEWEST[self.event])
        number = event_number(self.event)
        project = session.projects.get(issue_number(self.issue))
        if project is None:
            row = await session.issue(self.issue)
            question = session.question_ever(row.project_id, self.query)
            payload = await _payload(session, question, number)
        else:
            # The payload is found by project and id, concurrently with the issue.
            question = session.question_ever(project, self.query)
            row, payload = await asyncio.gather(
                session.issue(self.issue), _payload(session, question, number)
            )
        return await _by_id(session, question, number, payload, _event_issue(row))


class GetProjectEvent(ReadCall[EventDetail], frozen=True):
    """An event of a project by its id, or `latest`, or `oldest`."""

    project: int
    event: str

    async def fetch(self, session: Session) -> EventDetail:
        """The event with its issue, and the previous and next event."""
        question = session.question_ever(self.project)
        payload: _Payload = None
        if self.event in _NEWEST:
            rows = await session.rows(_ends_sql(question, None, newest=_NEWEST[self.event]))
        else:
            number = event_number(self.event)
            payload = await _payload(session, question, number)
            time = payload[0] if payload else None
            rows = await session.rows(_event_sql(question, number, time))
        stored = _first(rows)
        issue = await _issue_of(session, question, stored.fingerprint)
        return await _complete(session, question, stored, issue, payload)


async def _by_id(
    session: Session, question: Question, number: int, payload: _Payload, issue: _EventIssue
) -> EventDetail:
    if payload is None:
        stored = _first(await session.rows(_event_sql(question, number, None)))
        _check_issue(stored, issue)
        return await _complete(session, question, stored, issue, payload)
    time = payload[0]
    itself, before, after = await _neighbours(session, question, EventHeader(number, time), issue)
    if itself is None:
        itself = _first(await session.rows(_event_sql(question, number, time)))
        _check_issue(itself, issue)
    return await _detail(session, question, itself, payload[1], issue, before, after)


async def _complete(
    session: Session, question: Question, stored: EventHeader, issue: _EventIssue, payload: _Payload
) -> EventDetail:
    """The details of an event whose row is known."""
    payload, (_, before, after) = await asyncio.gather(
        _visible_payload(session, question, stored, payload), _neighbours(session, question, stored, issue)
    )
    content = payload[1] if payload else None
    return await _detail(session, question, stored, content, issue, before, after)


async def _payload(session: Session, question: Question, event: int) -> _Payload:
    """Time and payload of an event, if still stored; searched first near the time in its id."""
    near = likely_range(event)
    found = None if near is None else await stored_payload(session, question, event, near)
    return found or await stored_payload(session, question, event)


async def _visible_payload(
    session: Session, question: Question, stored: EventHeader, found: _Payload
) -> _Payload:
    """The payload of a row.

    A block becomes visible table by table, so the payload of a recent row may follow its row.
    """
    at = Range(stored.time, stored.time + 1)
    found = found or await stored_payload(session, question, stored.id, at)
    for pause in _RETRY_SECONDS:
        if found or question.now_ms - stored.received > _VISIBLE_AFTER_MS:
            break
        await asyncio.sleep(pause)
        found = await stored_payload(session, question, stored.id, at)
    return found


async def _newest_or_oldest(
    session: Session, question: Question, row: IssueRow, *, newest: bool
) -> EventDetail:
    """The newest or oldest event of an issue, with its neighbour; searched first near the time in the issue's row."""
    issue = _event_issue(row)
    reach = max(HOUR_MS, issue.reach)
    bound = row.last_seen - reach if newest else row.first_seen + reach
    rows: Rows = ()
    if bound > 0:
        rows = await session.rows(_ends_sql(question, row.fingerprints, newest, bound))
    if not rows or (len(rows) == 1 and row.events > 1):
        rows = await session.rows(_ends_sql(question, row.fingerprints, newest))
    stored = _first(rows)
    payload = await _visible_payload(session, question, stored, None)
    neighbour = rows[1][0] if len(rows) > 1 else None
    before, after = (neighbour, None) if newest else (None, neighbour)
    return await _detail(session, question, stored, payload[1] if payload else None, issue, before, after)


async def _neighbours(
    session: Session, question: Question, at: EventHeader, issue: _EventIssue
) -> tuple[EventHeader | None, int | None, int | None]:
    """The row of an event, if the issue has it, and the ids of the previous and next event.

    They are searched first near the event.
    """
    end = at.time + issue.reach
    near = Range(max(0, at.time - issue.reach), end if end < question.now_ms else None)
    ((before, after, itself),) = await session.rows(_nearby_sql(question, issue.fingerprints, at, near))
    if (before is None and near.start > 0) or (after is None and near.end is not None):
        ids: dict[int, int] = dict(await session.rows(_neighbours_sql(question, issue.fingerprints, at)))
        before, after = ids.get(-1), ids.get(1)
    return (EventHeader(at.id, at.time, *itself[0]) if itself else None), before, after


async def _issue_of(session: Session, question: Question, fingerprint: int) -> _EventIssue:
    """The issue of a fingerprint: usually the issue that it opened, else the issue it was merged into."""
    own = issue_id(question.project, fingerprint)
    try:
        row = await session.issue(hex64(own), question.project)
    except NotFound:
        return _EventIssue(own, [fingerprint], [])
    if fingerprint in row.fingerprints:
        return _event_issue(row)
    known = await session.rows(issues_of(question, [fingerprint]))
    return (
        _event_issue(await session.issue(hex64(known[0][1]), question.project))
        if known
        else _EventIssue(own, [fingerprint], [])
    )


def _event_issue(row: IssueRow) -> _EventIssue:
    reach = max(MIN_REACH_MS, NEAR_GAPS * row.gap, min(BUSY_GAPS * row.gap, DAY_MS))
    return _EventIssue(row.issue_id, row.fingerprints, row.grouping_parts, reach)


def _first(rows: Rows) -> EventHeader:
    if not rows:
        raise NotFound("there is no such event")
    return EventHeader(*rows[0])


def _check_issue(stored: EventHeader, issue: _EventIssue) -> None:
    if stored.fingerprint not in issue.fingerprints:
        raise NotFound("there is no such event in this issue")


async def _grouping(
    session: Session, question: Question, issue: _EventIssue, fingerprint: int
) -> tuple[Sequence[str], MergedBy | None]:
    """The readable parts of an event's fingerprint, and its merge.

    There is a merge only if the fingerprint is not the issue's own.
    """
    own = issue_id(question.project, fingerprint)
    if issue.number == own:
        return issue.parts, None
    parts, merges = await asyncio.gather(
        session.rows(issue_by_id(own, question.project, "grouping_parts")),
        session.rows(_merge_sql(question, issue.number, fingerprint)),
    )
    return parts[0][0] if parts else (), MergedBy(merges[0][0], iso(merges[0][1])) if merges else None


async def _detail(
    session: Session,
    question: Question,
    stored: EventHeader,
    payload: bytes | None,
    issue: _EventIssue,
    before: int | None,
    after: int | None,
) -> EventDetail:
    parts, merged = await _grouping(session, question, issue, stored.fingerprint)
    detail = EventDetail(
        event=None if payload is None else readable(stored.id, payload),
        event_id=event_text(stored.id),
        project_id=str(question.project),
        issue_id=hex64(issue.number),
        fingerprint=hex64(stored.fingerprint),
        time=iso(stored.time),
        received_at=iso(stored.received),
        sdk=stored.sdk,
        previous_event_id=None if before is None else event_text(before),
        next_event_id=None if after is None else event_text(after),
        grouping=GroupingOf(stored.grouping_version, stored.grouping_rule, list(parts)),
        merged=merged,
    )
    if payload is not None and detail.event is None:
        raise DamagedPayload(detail)
    return detail


def _event_sql(question: Question, event: int, time: int | None) -> Sql:
    """`HEADER` of an event; its time, if known, limits the read to one week of the table."""
    statement = question.statement()
    at = "" if time is None else f" AND ts = {statement.parameters.moment(time)}"
    return statement.ready(
        f"SELECT {HEADER} FROM events WHERE {statement.project}{at}"
        f" AND id = {statement.parameters.add(event, 'UInt128')} LIMIT 1"
    )


def _ends_sql(
    question: Question, fingerprints: Sequence[int] | None, newest: bool, bound: int | None = None
) -> Sql:
    """`HEADER` of the two newest or oldest events of fingerprints, or of the project, that match the query.

    Only events from `bound` (Unix ms) on are read, or up to it for the oldest; there may be fewer.
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
        f"SELECT {HEADER} FROM events WHERE {' AND '.join(conditions)} ORDER BY ts {order}, id {order} LIMIT 2"
    )


def _nearby_sql(question: Question, fingerprints: Sequence[int], event: EventHeader, near: Range) -> Sql:
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


def _neighbours_sql(question: Question, fingerprints: Sequence[int], event: EventHeader) -> Sql:
    """-1 with the id of the previous event, 1 with the id of the next.

    They are among the events of some fingerprints that match the query.
    """
    statement = question.statement()
    of = f"{statement.project} AND {statement.of_fingerprints(fingerprints)} AND {statement.event}"
    sides = (
        f"(SELECT {side} AS side, id FROM events"
        f" WHERE {of} AND {before_or_after(statement, sign, event.time, event.id)}"
        f" ORDER BY ts {order}, id {order} LIMIT 1)"
        for side, sign, order in ((-1, "<", "DESC"), (1, ">", "ASC"))
    )
    return statement.ready(" UNION ALL ".join(sides))


def _merge_sql(question: Question, issue: int, fingerprint: int) -> Sql:
    """Author and time (Unix ms) of the last merge of a fingerprint into an issue."""
    statement = question.statement()
    name = statement.parameters.add(hex64(fingerprint), "String")
    return statement.ready(
        "SELECT by, toUnixTimestamp64Milli(at) FROM issue_activity FINAL"
        f" WHERE {statement.project} AND issue_id = {statement.parameters.add(issue, 'UInt64')} AND kind = 'merged'"
        f" AND has(JSONExtract(data, 'fingerprints', 'Array(String)'), {name}) ORDER BY at DESC, id DESC LIMIT 1"
    )
