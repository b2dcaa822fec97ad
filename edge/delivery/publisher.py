"""Publishes valid events: adds each to the chunk of its partition (contract, section 2, point 9)."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from struct import iter_unpack

from edge.delivery.chunker import Chunker, EventTuple
from edge.delivery.sink import Sink
from edge.delivery.spool import SpoolFull
from edge.request_errors import unavailable
from edge.validation.fast_path import ValidEvent
from schemas.ids import partition_of, project_seed
from schemas.projects import Project


class EventPublisher:
    """Adds valid events to chunks and waits until they are stored."""

    def __init__(self, chunker: "Chunker", sink: Sink) -> None:
        self._chunker = chunker
        self._sink = sink

    def put(self, project: Project, sdk: str, events: Sequence[ValidEvent]) -> list[asyncio.Future[None]]:
        """Add events to their chunks; the futures complete when the chunks are stored."""
        number, received_ms = project.number, time.time_ns() // 1_000_000
        seed = project_seed(number)
        # Until Kafka is first reached the partition count is unknown: the drain distributes the events later.
        partitions = self._sink.partitions or 1
        by_partition: defaultdict[int, list[EventTuple]] = defaultdict(list)
        digits = "".join([event_id for event_id, _ in events]).replace("-", "")
        raw_ids = iter_unpack("16s", bytes.fromhex(digits))
        for (event_id, event), (raw_id,) in zip(events, raw_ids, strict=True):
            group = by_partition[partition_of(seed, event_id, partitions)]
            group.append((number, raw_id, received_ms, sdk, bytes(event)))
        add_events = self._chunker.add_events
        return [
            chunk
            for partition, group in by_partition.items()
            for chunk in add_events(partition, partitions, group)
        ]

    @staticmethod
    async def wait_stored(chunks: Iterable[asyncio.Future[None]]) -> None:
        """Return when all chunks are stored.

        Raises RequestError (503) if one isn't: the retry is deduplicated by event id.
        """
        try:
            for chunk in chunks:
                # Shielded: a client that disconnects must not cancel a chunk that it shares with others.
                await asyncio.shield(chunk)
        except SpoolFull:
            raise unavailable("spool full") from None
