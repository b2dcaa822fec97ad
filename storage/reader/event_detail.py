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
from storage.reader.event_rows import ErrorLocation, read_placed
from storage.reader.execute import Rows
from storage.reader.identifiers import event_number, event_text, issue_number
from storage.reader.issue_lookup import IssueRef, issue_by_id, issues_of
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
            issue_ref = await session.issue_ref(self.issue)
            question = session.question_ever(issue_ref.project_id, "", None, None)
            stored = await _outermost(session, question, issue_ref, _OUTERMOST[self.event])
            return await _shown(session, question, stored, _home(issue_ref), None)
        number = event_number(self.event)
        project = session.known_project(issue_number(self.issue))
        if project is None:
            issue_ref = await session.issue_ref(self.issue)
            question = session.question_ever(issue_ref.project_id, "", None, None)
            payload = await _payload(session, question, number)
        else:
            # Project and id are enough to look for the payload, beside the question about the issue.
            question = session.question_ever(project, "", None, None)
            issue_ref, payload = await asyncio.gather(
                session.issue_ref(self.issue), _payload(session, question, number)
            )
        return await _by_id(session, question, number, payload, _home(issue_ref))


class GetProjectEvent(ReadCall[EventDetail], frozen=True):
    """An event of a project by its id, or `latest`, or `oldest`."""

    project: int
    event: str

    async def answer(self, session: Session) -> EventDetail:
        """The event with its issue and its neighbours."""
        question = session.question_ever(self.project, "", None, None)
        payload: Rows | None = None
        if self.event in _OUTERMOST:
            rows = await session.rows(event_lookup.outermost(question, None, newest=_OUTERMOST[self.event]))
        else:
            number = event_number(self.event)
            payload = await _payload(session, question, number)
            time = payload[0][0] if payload else None
            rows = await session.rows(event_lookup.event_by_id(question, number, time))
        stored = _first(rows)
        home = await _home_of(session, question, stored.fingerprint)
        return await _shown(session, question, stored, home, payload)


async def _by_id(
    session: Session, question: Question, number: int, payload: Rows, home: _Home
) -> EventDetail:
    if not payload:
        stored = _first(await session.rows(event_lookup.event_by_id(question, number, None)))
        _belongs(stored, home)
        return await _shown(session, question, stored, home, payload)
    time = int(payload[0][0])
    itself, before, after = await _around(session, question, ErrorLocation(number, time), home)
    if itself is None:
        itself = _first(await session.rows(event_lookup.event_by_id(question, number, time)))
        _belongs(itself, home)
    return await _detail(session, question, itself, payload[0][1], home, before, after)


async def _shown(
    session: Session, question: Question, stored: ErrorLocation, home: _Home, payload: Rows | None
) -> EventDetail:
    """What is left to find of an event whose row is known."""
    settled, (_, before, after) = await asyncio.gather(
        _settled(session, question, stored, payload), _around(session, question, stored, home)
    )
    content = settled[0][1] if settled else None
    return await _detail(session, question, stored, content, home, before, after)


async def _payload(session: Session, question: Question, event: int) -> Rows:
    """Time and payload of an event, while it is kept: first near the time that its id carries."""
    near = event_lookup.likely_range(event)
    rows: Rows = () if near is None else await session.rows(event_lookup.payload_by_id(question, event, near))
    return rows or await session.rows(event_lookup.payload_by_id(question, event))


async def _settled(session: Session, question: Question, stored: ErrorLocation, payload: Rows | None) -> Rows:
    """The payload of a row. A block becomes visible table by table: that of a row that has just come may still be on its way."""
    at = Range(stored.time, stored.time + 1)
    rows = (
        await session.rows(event_lookup.payload_by_id(question, stored.id, at))
        if payload is None
        else payload
    )
    for pause in _SETTLING_SECONDS:
        if rows or question.now_ms - stored.received > _SETTLED_MS:
            break
        await asyncio.sleep(pause)
        rows = await session.rows(event_lookup.payload_by_id(question, stored.id, at))
    return rows


async def _outermost(
    session: Session, question: Question, issue_ref: IssueRef, newest: bool
) -> ErrorLocation:
    """The newest or oldest event of an issue: first where the issue says that it is."""
    beyond = issue_ref.last_seen - HOUR_MS if newest else issue_ref.first_seen + HOUR_MS
    of = issue_ref.fingerprints
    rows: Rows = ()
    if beyond > 0:
        rows = await session.rows(event_lookup.outermost(question, of, newest, beyond))
    return _first(rows or await session.rows(event_lookup.outermost(question, of, newest)))


async def _around(
    session: Session, question: Question, at: ErrorLocation, home: _Home
) -> tuple[ErrorLocation | None, int | None, int | None]:
    """The row of an event, if it is one of the issue's, and the ids before and after it: first near the event, then anywhere."""
    end = at.time + home.reach
    near = Range(max(0, at.time - home.reach), end if end < question.now_ms else None)
    ((before, after, itself),) = await session.rows(
        event_lookup.around(question, home.fingerprints, at, near)
    )
    if (before is None and near.start > 0) or (after is None and near.end is not None):
        found: dict[int, int] = dict(
            await session.rows(event_lookup.neighbours(question, home.fingerprints, at))
        )
        before, after = found.get(-1), found.get(1)
    return (read_placed((at.id, at.time, *itself[0])) if itself else None), before, after


async def _home_of(session: Session, question: Question, fingerprint: int) -> _Home:
    """The issue of a fingerprint: most often the one that it opened, else the one that is found to have it."""
    own = issue_id(question.project, fingerprint)
    try:
        issue_ref = await session.issue_ref(hex64(own), question.project)
    except NotFound:
        return _Home(own, [fingerprint], [])
    if fingerprint in issue_ref.fingerprints:
        return _home(issue_ref)
    known = await session.rows(issues_of(question, [fingerprint]))
    return (
        _home(await session.issue_ref(hex64(known[0][1]), question.project))
        if known
        else _Home(own, [fingerprint], [])
    )


def _home(issue_ref: IssueRef) -> _Home:
    reach = max(NEAREST_MS, NEAR_GAPS * issue_ref.gap, min(BUSY_GAPS * issue_ref.gap, DAY_MS))
    return _Home(issue_ref.issue_id, issue_ref.fingerprints, issue_ref.grouping_parts, reach)


def _first(rows: Rows) -> ErrorLocation:
    if not rows:
        raise NotFound("there is no such event")
    return read_placed(rows[0])


def _belongs(stored: ErrorLocation, home: _Home) -> None:
    if stored.fingerprint not in home.fingerprints:
        raise NotFound("there is no such event in this issue")


async def _why(
    session: Session, question: Question, home: _Home, fingerprint: int
) -> tuple[Sequence[str], MergedBy | None]:
    """The readable parts of an event's fingerprint, and who merged it into the issue where it is not the issue's own."""
    own = issue_id(question.project, fingerprint)
    if home.issue == own:
        return home.parts, None
    parts, merges = await asyncio.gather(
        session.rows(issue_by_id(own, question.project, "grouping_parts")),
        session.rows(activity.merge_of(question, home.issue, fingerprint)),
    )
    return parts[0][0] if parts else (), MergedBy(merges[0][0], iso(merges[0][1])) if merges else None


async def _detail(
    session: Session,
    question: Question,
    stored: ErrorLocation,
    payload: bytes | None,
    home: _Home,
    before: int | None,
    after: int | None,
) -> EventDetail:
    parts, merged = await _why(session, question, home, stored.fingerprint)
    detail = EventDetail(
        event=None if payload is None else readable(stored.id, payload),
        event_id=event_text(stored.id),
        project_id=str(question.project),
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
