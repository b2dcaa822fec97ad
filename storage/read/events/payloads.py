"""Reads of payloads, which are found through the rows of their events."""

from collections.abc import Sequence
from typing import Final

from schemas.times import DAY_MS
from storage.read.execute import Sql
from storage.read.query.question import Question
from storage.read.query.ranges import Range
from storage.read.reader import Session

_VERSION_7: Final = 7


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
    rows = await session.rows(_payloads(question, [event], near))
    return rows[0][1:] if rows else None


async def stored_payloads(
    session: Session, question: Question, events: Sequence[int], near: Range | None = None
) -> dict[int, bytes]:
    """The payloads of those of some events that have one; a time range leaves few parts to read."""
    rows = await session.rows(_payloads(question, events, near))
    return {event: payload for event, _, payload in rows}


def _payloads(question: Question, events: Sequence[int], near: Range | None) -> Sql:
    """Id, time (Unix ms) and payload of events."""
    statement = question.statement()
    within = "" if near is None else f" AND {statement.within('ts', near)}"
    where = (
        f"{statement.project} AND id IN {statement.parameters.add(list(events), 'Array(UInt128)')}{within}"
    )
    return statement.ready(
        f"SELECT id, toUnixTimestamp64Milli(ts), payload FROM payloads WHERE {where}"
        f" AND (fingerprint, ts) IN (SELECT fingerprint, ts FROM events WHERE {where})",
        raw=("payload",),
    )
