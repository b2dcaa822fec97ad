"""Reads of payloads, from single rows or from packs (`storage.tables.packs`)."""

from collections.abc import Sequence
from typing import Final

from schemas.errors import BadPayload
from schemas.times import DAY_MS
from storage.read.execute import Sql
from storage.read.query.question import Question
from storage.read.query.ranges import Range
from storage.read.reader import Session
from storage.tables.packs import unpacked

_VERSION_7: Final = 7
_WEEK_MS: Final = 7 * DAY_MS


def likely_range(event: int) -> Range | None:
    """The days around the time in a version 7 id, where its event most likely is. None for other ids."""
    if event >> 76 & 0xF != _VERSION_7:
        return None
    created = event >> 80
    return Range(max(0, created - DAY_MS), created + DAY_MS)


async def stored_payload(
    session: Session, question: Question, event: int, near: Range | None = None
) -> tuple[int, bytes] | None:
    """Time (Unix ms) and payload of an event that has one; a time range leaves few parts to read."""
    rows = await session.rows(_by_id(question, event, near))
    if not rows:
        return None
    time, pack, payload = rows[0]
    if pack not in (0, event):
        week = Range(max(0, time - _WEEK_MS), time + _WEEK_MS)
        holder = await session.rows(_by_id(question, pack, week))
        if holder and holder[0][1] == pack:
            payload = holder[0][2]
        else:
            # The pack was taken apart in between.
            rows = await session.rows(_by_id(question, event, near))
            time, pack, payload = rows[0] if rows else (time, 0, b"")
    return time, _json_of(payload, [event])[event] if pack else payload


async def stored_payloads(session: Session, question: Question, events: Sequence[int]) -> dict[int, bytes]:
    """The payloads of those of some events that have one; none of a pack that is taken apart now."""
    rows = {row[0]: row[1:] for row in await session.rows(_by_ids(question, events))}
    packs: dict[int, list[int]] = {}
    for event in events:
        if event in rows and rows[event][0]:
            packs.setdefault(rows[event][0], []).append(event)
    found = {event: rows[event][1] for event in events if event in rows and not rows[event][0]}
    elsewhere = [pack for pack in packs if pack not in rows]
    if elsewhere:
        rows |= {row[0]: row[1:] for row in await session.rows(_by_ids(question, elsewhere))}
    for pack, members in packs.items():
        if pack in rows and rows[pack][0] == pack:
            found |= _json_of(rows[pack][1], members)
    return found


def _json_of(pack: bytes, events: Sequence[int]) -> dict[int, bytes]:
    """The JSON of events of a pack; nothing of one that is damaged."""
    try:
        content = unpacked(pack)
    except BadPayload:
        return dict.fromkeys(events, b"")
    return {event: content.get(event.to_bytes(16, "big"), b"") for event in events}


def _by_id(question: Question, event: int, near: Range | None = None) -> Sql:
    """Time (Unix ms), pack and payload of an event, by primary key."""
    statement = question.statement()
    within = "" if near is None else f" AND {statement.within('ts', near)}"
    return statement.ready(
        f"SELECT toUnixTimestamp64Milli(ts), pack, payload FROM payloads WHERE {statement.project}"
        f" AND id = {statement.parameters.add(event, 'UInt128')}{within} LIMIT 1",
        raw=("payload",),
    )


def _by_ids(question: Question, events: Sequence[int]) -> Sql:
    """Id, pack and payload of events."""
    statement = question.statement()
    ids = statement.parameters.add(list(events), "Array(UInt128)")
    return statement.ready(
        f"SELECT id, pack, payload FROM payloads WHERE {statement.project} AND id IN {ids}", raw=("payload",)
    )
