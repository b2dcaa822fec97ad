"""Past events whole, for what has to look at events themselves."""

from collections.abc import Sequence
from typing import Final

from msgspec import Raw

from schemas.ids import hex64, parse_hex64
from storage.reader import event_list
from storage.reader.answers import Sample
from storage.reader.errors import BadQuery
from storage.reader.event_calls import issues_of_events, newest
from storage.reader.event_rows import StoredEvent, issue_of, read_event
from storage.reader.issue_lookup import issues_of
from storage.reader.payloads import readable
from storage.reader.session import Session

MAX_SAMPLE: Final = 2_000
MAX_BYTES: Final = 32 * 1024 * 1024
"""Most that the events of one sample may take together: an event may have a megabyte."""
_PORTION: Final = 100


async def sample(
    session: Session,
    project: int,
    query: str,
    start: int | None,
    end: int | None,
    limit: int,
    max_bytes: int = MAX_BYTES,
) -> list[Sample]:
    """The newest events of range and query whose payload is still kept and can be read; fewer where they are large."""
    if not 1 <= limit <= MAX_SAMPLE:
        raise BadQuery("limit", f"a number from 1 to {MAX_SAMPLE}")
    asked = session.question(project, query, start, end)
    rows = await newest(session, asked, None, limit, None)
    events = [read_event(row) for row in rows[:limit]]
    known = await issues_of_events(session, asked, events)
    samples: list[Sample] = []
    # In portions: other calls have their turn between them, and what is too much is not read at all.
    for first in range(0, len(events), _PORTION):
        portion = events[first : first + _PORTION]
        found = await session.rows(event_list.payloads_by_id(asked, [event.id for event in portion]))
        payloads: dict[int, bytes] = dict(found)
        for event in portion:
            sent = readable(event.id, payloads[event.id]) if event.id in payloads else None
            if sent is None:
                continue
            max_bytes -= memoryview(sent).nbytes
            if max_bytes < 0:
                return samples
            samples.append(_sample(event, sent, issue_of(project, event.fingerprint, known)))
    return samples


def _sample(event: StoredEvent, sent: Raw, issue: int) -> Sample:
    return Sample(
        event=sent,
        issue_id=hex64(issue),
        fingerprint=hex64(event.fingerprint),
        sdk=event.sdk,
        received_ms=event.received,
    )


async def issues_by_fingerprint(
    session: Session, project: int, fingerprints: Sequence[str]
) -> dict[str, str]:
    """By fingerprint, the issue that has its events now; of those that belong to one."""
    numbers = [number for number in map(parse_hex64, fingerprints) if number is not None]
    if not numbers:
        return {}
    rows = await session.rows(issues_of(session.question(project, "", None, None), numbers))
    return {hex64(fingerprint): hex64(issue) for fingerprint, issue, _ in rows}
