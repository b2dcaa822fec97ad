"""Events that the writer has dead-lettered and that were not put back.

They are counted as dead letters, so a repair does not send them. Sent again, an event that is still refused
would be dead-lettered and counted once more at each repair.
"""

from collections.abc import Iterable

import msgspec

from broker.client import name_of, open_consumer, records_before
from broker.types import Record
from schemas.chunks import REPLAYED_HEADER, decode_chunk, decode_grouped
from schemas.dead_letters import from_headers
from schemas.settings import KafkaSettings
from schemas.topics import Topic
from storage.exactly_once.rejections import (
    LOST,
    UNCOUNTED,
    BlockRecord,
    EventKey,
    Origin,
    PutBack,
    lost_origin,
)


class DeadLettered:
    """Events of dead letters, by the positions at which they were dead-lettered."""

    def __init__(self) -> None:
        self._origins: dict[EventKey, set[str]] = {}
        # Origins of lost sources, whose events are unknown.
        self._lost: set[str] = set()

    def add_record(self, record: Record, topic: str) -> None:
        """Note the event of a dead letter, if it is one of `topic`."""
        try:
            letter, headers = from_headers(record.headers)
            origin = dict(headers).get(REPLAYED_HEADER, UNCOUNTED)
            if letter.topic != topic or origin == UNCOUNTED:
                return
            text = origin.decode(errors="replace")
            if Origin.of(text).kind == LOST:
                self._lost.add(text)
                return
            events = decode_chunk(decode_grouped(record.value or b"").chunk)
        except (ValueError, msgspec.DecodeError):
            return
        for event in events:
            self._origins.setdefault((event.project, event.id), set()).add(text)

    def read(self, parts: Iterable[BlockRecord]) -> None:
        """Note the events of records whose source was lost when the writer read them."""
        for part in parts:
            # A record that has its events is sent again, or was put back for one of them.
            if not part.grouped.chunk and (origin := lost_origin(part.grouped)) in self._lost:
                for event, _ in part.new():
                    self._origins.setdefault((event.project, event.id), set()).add(origin)

    def put_back(self, events: Iterable[PutBack]) -> None:
        """Forget events put back from a position; an event that was refused again has another one."""
        for back in events:
            self._origins.get((back.event.project, back.event.id), set()).discard(back.origin)

    def among(self, keys: Iterable[EventKey]) -> set[EventKey]:
        """Those of the events that are dead letters."""
        return {key for key in keys if self._origins.get(key)}


async def dead_lettered(settings: KafkaSettings) -> DeadLettered:
    """Read all dead letters of `grouped`. Raises KafkaError."""
    found, topic = DeadLettered(), name_of(settings, Topic.GROUPED)
    async with open_consumer(settings, Topic.DEAD_LETTERS) as consumer:
        async for record in records_before(consumer, await consumer.end_offsets(consumer.assignment())):
            found.add_record(record, topic)
    return found
