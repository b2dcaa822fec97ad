"""Past events whole, for what has to look at events themselves."""

from collections.abc import Sequence
from typing import Final

from msgspec import Raw

from schemas.ids import hex64, parse_hex64
from storage.errors import BadQuery
from storage.reader import event_list
from storage.reader.answers import Sample
from storage.reader.event_calls import issues_of_events, newest
from storage.reader.event_rows import StoredEvent, issue_of, read_event
from storage.reader.issue_lookup import issues_of
from storage.reader.payloads import readable
from storage.reader.port import ProjectCall, ReadCall
from storage.reader.session import Session

MAX_SAMPLE: Final = 2_000
MAX_BYTES: Final = 32 * 1024 * 1024
"""Most that the events of one sample may take together: an event may have a megabyte."""
_PORTION: Final = 100


class SampleEvents(ProjectCall[list[Sample]], frozen=True):
    """The newest events of range and query whose payload is still kept and can be read; fewer where they are large."""

    limit: int = 500
    max_bytes: int = MAX_BYTES

    async def answer(self, session: Session) -> list[Sample]:
        """The events whole, newest first."""
        if not 1 <= self.limit <= MAX_SAMPLE:
            raise BadQuery("limit", f"a number from 1 to {MAX_SAMPLE}")
        question = self.question(session)
        rows = await newest(session, question, None, self.limit, None)
        events = [read_event(row) for row in rows[: self.limit]]
        known = await issues_of_events(session, question, events)
        samples: list[Sample] = []
        room = self.max_bytes
        # In portions: other calls run between them, and what is too much is not read at all.
        for first in range(0, len(events), _PORTION):
            portion = events[first : first + _PORTION]
            found = await session.rows(event_list.payloads_by_id(question, [event.id for event in portion]))
            payloads: dict[int, bytes] = dict(found)
            for event in portion:
                sent = readable(event.id, payloads[event.id]) if event.id in payloads else None
                if sent is None:
                    continue
                room -= memoryview(sent).nbytes
                if room < 0:
                    return samples
                samples.append(_sample(event, sent, issue_of(self.project, event.fingerprint, known)))
        return samples


def _sample(event: StoredEvent, sent: Raw, issue: int) -> Sample:
    return Sample(
        event=sent,
        issue_id=hex64(issue),
        fingerprint=hex64(event.fingerprint),
        sdk=event.sdk,
        received_ms=event.received,
    )


class FindIssues(ReadCall[dict[str, str]], frozen=True):
    """By fingerprint, the issue that has its events now; of those that belong to one."""

    project: int
    fingerprints: Sequence[str]

    async def answer(self, session: Session) -> dict[str, str]:
        """Issues by fingerprint."""
        numbers = [number for number in map(parse_hex64, self.fingerprints) if number is not None]
        if not numbers:
            return {}
        rows = await session.rows(issues_of(session.question(self.project, "", None, None), numbers))
        return {hex64(fingerprint): hex64(issue) for fingerprint, issue, _ in rows}
