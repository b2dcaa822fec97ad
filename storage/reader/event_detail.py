"""Calls about one event: with its payload, its issue and its neighbours."""

import asyncio
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from schemas.ids import hex64, issue_id
from schemas.times import iso
from storage.errors import DamagedPayload, NotFound
from storage.reader import activity, event_lookup
from storage.reader.answers import EventDetail, GroupingOf, MergedBy
from storage.reader.event_rows import Placed, read_placed
from storage.reader.execute import Rows
from storage.reader.identifiers import event_number, event_text, issue_number
from storage.reader.issue_lookup import IssuePlace, issue_by_id, issues_of
from storage.reader.payloads import readable
from storage.reader.port import ReadCall
from storage.reader.question import Question
from storage.reader.ranges import DAY_MS, HOUR_MS, Range
from storage.reader.session import Session

_SETTLING_SECONDS: Final = (0.0, 0.05, 0.1, 0.2, 0.4)
_SETTLED_MS: Final = 300_000
NEAR_GAPS: Final = 8
BUSY_GAPS: Final = 64
"""Mean distances between an issue's events within which its neighbours are looked for first: these, or so many up to a day."""
NEAREST_MS: Final = 60_000
"""And at least this far, whatever the distances."""
_OUTERMOST: Final = {"latest": True, "oldest": False}


class _Home(Struct, frozen=True):
    """The issue of an event, with the parts of its own fingerprint; `reach` is how far from it (ms) the neighbours are looked for first."""

    issue: int
    fingerprints: Sequence[int]
    parts: Sequence[str]
    reach: int = HOUR_MS


class GetIssueEvent(ReadCall[EventDetail], frozen=True):
    """An event of an issue by its id, or `latest`, or `oldest`."""

    issue: str
    event: str

    async def answer(self, session: Session) -> EventDetail:
        """The event with its issue and its neighbours."""
        if self.event in _OUTERMOST:
            place = await session.place(self.issue)
            asked = session.question_ever(place.project_id, "", None, None)
            stored = await _outermost(session, asked, place, _OUTERMOST[self.event])
            return await _shown(session, asked, stored, _home(place), None)
        number = event_number(self.event)
        project = session.known_project(issue_number(self.issue))
        if project is None:
            place = await session.place(self.issue)
            asked = session.question_ever(place.project_id, "", None, None)
            payload = await _payload(session, asked, number)
        else:
            # Project and id are enough to look for the payload, beside the question about the issue.
            asked = session.question_ever(project, "", None, None)
            place, payload = await asyncio.gather(session.place(self.issue), _payload(session, asked, number))
        return await _by_id(session, asked, number, payload, _home(place))


class GetProjectEvent(ReadCall[EventDetail], frozen=True):
    """An event of a project by its id, or `latest`, or `oldest`."""

    project: int
    event: str

    async def answer(self, session: Session) -> EventDetail:
        """The event with its issue and its neighbours."""
        asked = session.question_ever(self.project, "", None, None)
        payload: Rows | None = None
        if self.event in _OUTERMOST:
            rows = await session.rows(event_lookup.outermost(asked, None, newest=_OUTERMOST[self.event]))
        else:
            number = event_number(self.event)
            payload = await _payload(session, asked, number)
            time = payload[0][0] if payload else None
            rows = await session.rows(event_lookup.event_by_id(asked, number, time))
        stored = _first(rows)
        home = await _home_of(session, asked, stored.fingerprint)
        return await _shown(session, asked, stored, home, payload)


async def _by_id(session: Session, asked: Question, number: int, payload: Rows, home: _Home) -> EventDetail:
    if not payload:
        stored = _first(await session.rows(event_lookup.event_by_id(asked, number, None)))
        _belongs(stored, home)
        return await _shown(session, asked, stored, home, payload)
    time = int(payload[0][0])
    itself, before, after = await _around(session, asked, Placed(number, time), home)
    if itself is None:
        itself = _first(await session.rows(event_lookup.event_by_id(asked, number, time)))
        _belongs(itself, home)
    return await _detail(session, asked, itself, payload[0][1], home, before, after)


async def _shown(
    session: Session, asked: Question, stored: Placed, home: _Home, payload: Rows | None
) -> EventDetail:
    """What is left to find of an event whose row is known."""
    settled, (_, before, after) = await asyncio.gather(
        _settled(session, asked, stored, payload), _around(session, asked, stored, home)
    )
    content = settled[0][1] if settled else None
    return await _detail(session, asked, stored, content, home, before, after)


async def _payload(session: Session, asked: Question, event: int) -> Rows:
    """Time and payload of an event, while it is kept: first near the time that its id carries."""
    near = event_lookup.likely_range(event)
    rows: Rows = () if near is None else await session.rows(event_lookup.payload_by_id(asked, event, near))
    return rows or await session.rows(event_lookup.payload_by_id(asked, event))


async def _settled(session: Session, asked: Question, stored: Placed, payload: Rows | None) -> Rows:
    """The payload of a row. A block becomes visible table by table: that of a row that has just come may still be on its way."""
    at = Range(stored.time, stored.time + 1)
    rows = (
        await session.rows(event_lookup.payload_by_id(asked, stored.id, at)) if payload is None else payload
    )
    for pause in _SETTLING_SECONDS:
        if rows or asked.now_ms - stored.received > _SETTLED_MS:
            break
        await asyncio.sleep(pause)
        rows = await session.rows(event_lookup.payload_by_id(asked, stored.id, at))
    return rows


async def _outermost(session: Session, asked: Question, place: IssuePlace, newest: bool) -> Placed:
    """The newest or oldest event of an issue: first where the issue says that it is."""
    beyond = place.last_seen - HOUR_MS if newest else place.first_seen + HOUR_MS
    of = place.fingerprints
    rows: Rows = ()
    if beyond > 0:
        rows = await session.rows(event_lookup.outermost(asked, of, newest, beyond))
    return _first(rows or await session.rows(event_lookup.outermost(asked, of, newest)))


async def _around(
    session: Session, asked: Question, at: Placed, home: _Home
) -> tuple[Placed | None, int | None, int | None]:
    """The row of an event, if it is one of the issue's, and the ids before and after it: first near the event, then anywhere."""
    end = at.time + home.reach
    near = Range(max(0, at.time - home.reach), end if end < asked.now_ms else None)
    ((before, after, itself),) = await session.rows(event_lookup.around(asked, home.fingerprints, at, near))
    if (before is None and near.start > 0) or (after is None and near.end is not None):
        found: dict[int, int] = dict(
            await session.rows(event_lookup.neighbours(asked, home.fingerprints, at))
        )
        before, after = found.get(-1), found.get(1)
    return (read_placed((at.id, at.time, *itself[0])) if itself else None), before, after


async def _home_of(session: Session, asked: Question, fingerprint: int) -> _Home:
    """The issue of a fingerprint: most often the one that it opened, else the one that is found to have it."""
    own = issue_id(asked.project, fingerprint)
    try:
        place = await session.place(hex64(own), asked.project)
    except NotFound:
        return _Home(own, [fingerprint], [])
    if fingerprint in place.fingerprints:
        return _home(place)
    known = await session.rows(issues_of(asked, [fingerprint]))
    return (
        _home(await session.place(hex64(known[0][1]), asked.project))
        if known
        else _Home(own, [fingerprint], [])
    )


def _home(place: IssuePlace) -> _Home:
    reach = max(NEAREST_MS, NEAR_GAPS * place.gap, min(BUSY_GAPS * place.gap, DAY_MS))
    return _Home(place.issue_id, place.fingerprints, place.grouping_parts, reach)


def _first(rows: Rows) -> Placed:
    if not rows:
        raise NotFound("there is no such event")
    return read_placed(rows[0])


def _belongs(stored: Placed, home: _Home) -> None:
    if stored.fingerprint not in home.fingerprints:
        raise NotFound("there is no such event in this issue")


async def _why(
    session: Session, asked: Question, home: _Home, fingerprint: int
) -> tuple[Sequence[str], MergedBy | None]:
    """The readable parts of an event's fingerprint, and who merged it into the issue where it is not the issue's own."""
    own = issue_id(asked.project, fingerprint)
    if home.issue == own:
        return home.parts, None
    parts, merges = await asyncio.gather(
        session.rows(issue_by_id(own, asked.project, "grouping_parts")),
        session.rows(activity.merge_of(asked, home.issue, fingerprint)),
    )
    return parts[0][0] if parts else (), MergedBy(merges[0][0], iso(merges[0][1])) if merges else None


async def _detail(
    session: Session,
    asked: Question,
    stored: Placed,
    payload: bytes | None,
    home: _Home,
    before: int | None,
    after: int | None,
) -> EventDetail:
    parts, merged = await _why(session, asked, home, stored.fingerprint)
    detail = EventDetail(
        event=None if payload is None else readable(stored.id, payload),
        event_id=event_text(stored.id),
        project_id=str(asked.project),
        issue_id=hex64(home.issue),
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
