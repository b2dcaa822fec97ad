"""Makes accepted events safe: to Kafka, or to the spool while Kafka takes none (contract, section 2, point 9)."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable

from broker.errors import RecordTooLarge, SinkUnavailable
from edge.delivery.publisher import EventTuple
from edge.delivery.sink import Sink
from edge.delivery.spool import Spool
from schemas.chunks import encode_chunk
from schemas.ids import partition_of, project_seed
from schemas.topics import Topic


class ChunkDelivery:
    """Writes chunks to the sink, or, where it takes none, to the spool."""

    def __init__(self, sink: Sink, spool: Spool) -> None:
        self._sink = sink
        self._spool = spool
        self.spooled_events = 0

    async def deliver(self, partition: int, partitions: int, events: list[EventTuple]) -> None:
        """Return when the events are on stable storage. Raises SpoolFull where neither place takes them."""
        left = events
        if self._sink.up:
            try:
                if partitions == self._sink.partitions:
                    left = await send_chunk(self._sink, partition, events)
                else:
                    left = await send_spread(self._sink, events)
            except SinkUnavailable:
                pass
        if left:
            # An event that is too large for the topic goes there too: the drain sets it aside.
            await self._spool.append(encode_chunk(left))
            self.spooled_events += len(left)


async def send_spread(sink: Sink, events: Iterable[EventTuple]) -> list[EventTuple]:
    """Send events, each to its partition; returns those that alone are too large for the topic. Raises SinkUnavailable."""
    spread: defaultdict[int, list[EventTuple]] = defaultdict(list)
    for event in events:
        event_id = event[1].hex()
        text = f"{event_id[:8]}-{event_id[8:12]}-{event_id[12:16]}-{event_id[16:20]}-{event_id[20:]}"
        spread[partition_of(project_seed(event[0]), text, sink.partitions)].append(event)
    refused = await asyncio.gather(
        *[send_chunk(sink, partition, chunk) for partition, chunk in spread.items()]
    )
    return [event for events in refused for event in events]


async def send_chunk(sink: Sink, partition: int, events: list[EventTuple]) -> list[EventTuple]:
    """Send events as one record, or as several where the topic takes none so large; returns those that alone are too large.

    Raises SinkUnavailable; some of the events may have been written then.
    """
    try:
        await sink.send(Topic.EVENTS, encode_chunk(events), partition)
    except RecordTooLarge:
        if len(events) == 1:
            return events
        half = len(events) // 2
        first = await send_chunk(sink, partition, events[:half])
        return first + await send_chunk(sink, partition, events[half:])
    return []
