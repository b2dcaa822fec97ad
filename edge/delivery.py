"""Makes accepted events safe: to Kafka, or to the spool while Kafka is away (contract, section 2, point 9)."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable

from edge.chunker import EventTuple
from edge.sink import Sink, Unavailable
from edge.spool import Spool
from schemas.chunks import encode_chunk
from schemas.ids import partition_of, project_seed
from schemas.topics import Topic


class Delivery:
    """Writes chunks to the sink, or, where it is away, to the spool."""

    def __init__(self, sink: Sink, spool: Spool) -> None:
        self._sink = sink
        self._spool = spool
        self.spooled_events = 0

    async def deliver(self, partition: int, partitions: int, events: list[EventTuple]) -> None:
        """Return when the events are on stable storage. Raises SpoolFull where neither place takes them."""
        if self._sink.up:
            try:
                if partitions == self._sink.partitions:
                    return await self._sink.send(Topic.EVENTS, encode_chunk(events), partition)
                return await self.send_spread(events)
            except Unavailable:
                pass
        await self._spool.append(encode_chunk(events))
        self.spooled_events += len(events)
        return None

    async def send_spread(self, events: Iterable[EventTuple]) -> None:
        """Send events that gathered while the partitions weren't known, each to its own. Raises Unavailable."""
        spread: defaultdict[int, list[EventTuple]] = defaultdict(list)
        for event in events:
            event_id = event[1].hex()
            text = f"{event_id[:8]}-{event_id[8:12]}-{event_id[12:16]}-{event_id[16:20]}-{event_id[20:]}"
            spread[partition_of(project_seed(event[0]), text, self._sink.partitions)].append(event)
        sends = [
            self._sink.send(Topic.EVENTS, encode_chunk(chunk), partition)
            for partition, chunk in spread.items()
        ]
        await asyncio.gather(*sends)
