"""Writes chunks to the sink, or to the spool while the sink is unavailable (contract, section 2, point 9)."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable

from broker.errors import RecordTooLarge, SinkUnavailable
from edge.delivery.chunker import EventTuple
from edge.delivery.sink import Sink
from edge.delivery.spool import Spool
from schemas.chunks import encode_chunk
from schemas.ids import event_partition
from schemas.topics import Topic


class ChunkDelivery:
    """Writes chunks to the sink, or to the spool while the sink is unavailable."""

    def __init__(self, sink: Sink, spool: Spool) -> None:
        self._sink = sink
        self._spool = spool

    async def deliver(self, partition: int, partitions: int, events: list[EventTuple]) -> None:
        """Return when the events are on stable storage. Raises SpoolFull if neither sink nor spool accepts them."""
        remaining = events
        if self._sink.up:
            try:
                if partitions == self._sink.partitions:
                    remaining = await send_chunk(self._sink, partition, events)
                else:
                    remaining = await send_partitioned(self._sink, events)
            except SinkUnavailable:
                pass
        if remaining:
            # This includes events that are too large for the topic: the drain quarantines them.
            await self._spool.append(encode_chunk(remaining))


async def send_partitioned(sink: Sink, events: Iterable[EventTuple]) -> list[EventTuple]:
    """Send each event to its partition; returns the events that are too large for the topic. Raises SinkUnavailable."""
    by_partition: defaultdict[int, list[EventTuple]] = defaultdict(list)
    for event in events:
        by_partition[event_partition(event[0], event[1], sink.partitions)].append(event)
    too_large = await asyncio.gather(
        *[send_chunk(sink, partition, chunk) for partition, chunk in by_partition.items()]
    )
    return [event for events in too_large for event in events]


async def send_chunk(sink: Sink, partition: int, events: list[EventTuple]) -> list[EventTuple]:
    """Send events as one record, halved as often as the topic's size limit requires.

    Returns the events that are too large. Raises SinkUnavailable; some of the events may have been written by
    then.
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
