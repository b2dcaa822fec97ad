"""Past events whole, for what has to look at events themselves."""

import asyncio
from collections.abc import Sequence
from typing import Final

from schemas.ids import hex64, parse_hex64
from storage.reader import event_list
from storage.reader.answers import Sample
from storage.reader.errors import BadQuery
from storage.reader.event_calls import issues_of_events, newest
from storage.reader.event_rows import issue_of, read_event
from storage.reader.issue_lookup import issues_of
from storage.reader.payloads import readable
from storage.reader.session import Session

MAX_SAMPLE: Final = 2_000


async def sample(
    session: Session, project: int, query: str, start: int | None, end: int | None, limit: int
) -> list[Sample]:
    """The newest events of range and query whose payload is still kept and can be read."""
    if not 1 <= limit <= MAX_SAMPLE:
        raise BadQuery("limit", f"a number from 1 to {MAX_SAMPLE}")
    asked = session.question(project, query, start, end)
    rows = await newest(session, asked, None, limit, None)
    events = [read_event(row) for row in rows[:limit]]
    if not events:
        return []
    known, found = await asyncio.gather(
        issues_of_events(session, asked, events),
        session.rows(event_list.payloads_by_id(asked, [event.id for event in events])),
    )
    sent = {event: readable(event, payload) for event, payload in found}
    samples = []
    for event in events:
        body = sent.get(event.id)
        if body is not None:
            issue = hex64(issue_of(project, event.fingerprint, known))
            samples.append(
                Sample(
                    event=body,
                    issue_id=issue,
                    fingerprint=hex64(event.fingerprint),
                    sdk=event.sdk,
                    received_ms=event.received,
                )
            )
    return samples


async def issues_by_fingerprint(
    session: Session, project: int, fingerprints: Sequence[str]
) -> dict[str, str]:
    """By fingerprint, the issue that has its events now; of those that belong to one."""
    numbers = [number for number in map(parse_hex64, fingerprints) if number is not None]
    if not numbers:
        return {}
    rows = await session.rows(issues_of(session.question(project, "", None, None), numbers))
    return {hex64(fingerprint): hex64(issue) for fingerprint, issue, _ in rows}
