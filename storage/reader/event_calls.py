"""Calls about single events: pages of them, and one with its payload and neighbours."""

import asyncio
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from schemas.ids import hex64
from schemas.times import iso
from storage.reader import event_list
from storage.reader.answers import EventDetail, EventPage, GroupingOf
from storage.reader.cursors import EventCursor, read_cursor, write_cursor
from storage.reader.errors import DamagedPayload, NotFound
from storage.reader.event_rows import StoredEvent, answer, issue_of, read_event
from storage.reader.execute import Rows
from storage.reader.identifiers import event_number, event_text, page_limit
from storage.reader.issue_lookup import issues_of
from storage.reader.issue_rows import IssueRow
from storage.reader.payloads import readable
from storage.reader.question import Question
from storage.reader.ranges import Range
from storage.reader.session import Session

_SETTLING_SECONDS: Final = (0.0, 0.05, 0.1, 0.2, 0.4)
_SETTLED_MS: Final = 300_000


async def issue_events(
    session: Session,
    issue: str,
    query: str,
    start: int | None,
    end: int | None,
    limit: int,
    cursor: str | None,
) -> EventPage:
    """A page of an issue's events, newest first."""
    row = await session.issue(issue)
    asked = session.question_ever(row.project_id, query, start, end)
    return await _page(session, asked, row.fingerprints, limit, cursor)


async def project_events(
    session: Session,
    project: int,
    query: str,
    start: int | None,
    end: int | None,
    limit: int,
    cursor: str | None,
) -> EventPage:
    """A page of a project's events, newest first."""
    asked = session.question(project, query, start, end)
    return await _page(session, asked, None, limit, cursor)


async def issue_event(session: Session, issue: str, event: str) -> EventDetail:
    """An event of an issue by its id, or `latest`, or `oldest`."""
    row = await session.issue(issue)
    asked = session.question_ever(row.project_id, "", None, None)
    stored, payload = await _stored(session, asked, row.fingerprints, event)
    if stored.fingerprint not in row.fingerprints:
        raise NotFound("there is no such event in this issue")
    return await _detail(session, asked, stored, payload, row.issue_id, row.fingerprints, row.grouping_parts)


async def project_event(session: Session, project: int, event: str) -> EventDetail:
    """An event of a project by its id, or `latest`, or `oldest`."""
    asked = session.question_ever(project, "", None, None)
    stored, payload = await _stored(session, asked, None, event)
    known = await session.rows(issues_of(asked, [stored.fingerprint]))
    number = issue_of(project, stored.fingerprint, {fingerprint: found for fingerprint, found, _ in known})
    row: IssueRow | None = await session.issue(hex64(number)) if known else None
    fingerprints = row.fingerprints if row else [stored.fingerprint]
    parts = row.grouping_parts if row else []
    return await _detail(session, asked, stored, payload, number, fingerprints, parts)


async def _page(
    session: Session, asked: Question, fingerprints: Sequence[int] | None, limit: int, cursor: str | None
) -> EventPage:
    page_limit(limit)
    last = read_cursor(cursor, EventCursor)
    if last is not None:
        asked = replace(asked, span=Range(last.start, last.end), now_ms=last.now_ms)
    rows = await newest(session, asked, fingerprints, limit, last)
    events = [read_event(row) for row in rows[:limit]]
    known = await issues_of_events(session, asked, events)
    return EventPage(
        events=[answer(event, known) for event in events],
        next_cursor=_cursor(asked, events[-1]) if len(rows) > limit else None,
    )


async def newest(
    session: Session,
    asked: Question,
    fingerprints: Sequence[int] | None,
    limit: int,
    last: EventCursor | None,
) -> Rows:
    """Rows of a page, one more than the limit where there is one."""
    rows: Rows = ()
    for span in event_list.windows(asked, last) if fingerprints is None else [asked.span]:
        rows = await session.rows(event_list.page(replace(asked, span=span), fingerprints, limit, last))
        if len(rows) > limit:
            break
    return rows


async def issues_of_events(
    session: Session, asked: Question, events: Sequence[StoredEvent]
) -> dict[int, int]:
    """The issue of each fingerprint that a known issue has."""
    fingerprints = sorted({event.fingerprint for event in events})
    rows: Rows = await session.rows(issues_of(asked, fingerprints)) if fingerprints else ()
    return {fingerprint: issue for fingerprint, issue, _ in rows}


async def _stored(
    session: Session, asked: Question, fingerprints: Sequence[int] | None, event: str
) -> tuple[StoredEvent, bytes | None]:
    """The event's row, and its payload while it is kept. Raises NotFound."""
    if event in {"latest", "oldest"}:
        rows = await session.rows(event_list.outermost(asked, fingerprints, newest=event == "latest"))
        payloads = await session.rows(event_list.payload_by_id(asked, rows[0][3])) if rows else ()
    else:
        number = event_number(event)
        payloads = await session.rows(event_list.payload_by_id(asked, number))
        time = payloads[0][0] if payloads else None
        rows = await session.rows(event_list.event_by_id(asked, number, time))
    if not rows:
        raise NotFound("there is no such event")
    stored = read_event(rows[0])
    # A block becomes visible table by table: the payload of a row that has just come may still be on its way.
    for pause in _SETTLING_SECONDS:
        if payloads or asked.now_ms - stored.received > _SETTLED_MS:
            break
        await asyncio.sleep(pause)
        payloads = await session.rows(event_list.payload_by_id(asked, stored.id))
    return stored, payloads[0][1] if payloads else None


async def _detail(
    session: Session,
    asked: Question,
    stored: StoredEvent,
    payload: bytes | None,
    issue: int,
    fingerprints: Sequence[int],
    parts: Sequence[str],
) -> EventDetail:
    before, after = await asyncio.gather(
        session.rows(event_list.neighbour(asked, fingerprints, stored, "previous")),
        session.rows(event_list.neighbour(asked, fingerprints, stored, "next")),
    )
    detail = EventDetail(
        event=None if payload is None else readable(stored.id, payload),
        event_id=event_text(stored.id),
        project_id=str(stored.project_id),
        issue_id=hex64(issue),
        fingerprint=hex64(stored.fingerprint),
        time=iso(stored.time),
        received_at=iso(stored.received),
        sdk=stored.sdk,
        previous_event_id=event_text(before[0][0]) if before else None,
        next_event_id=event_text(after[0][0]) if after else None,
        grouping=GroupingOf(stored.grouping_version, stored.grouping_rule, list(parts)),
    )
    if payload is not None and detail.event is None:
        raise DamagedPayload(detail)
    return detail


def _cursor(asked: Question, last: StoredEvent) -> str:
    return write_cursor(
        EventCursor(asked.span.start, asked.span.end, asked.now_ms, last.time, f"{last.id:032x}")
    )
