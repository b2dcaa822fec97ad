"""Admitted events on their way: compressed once, into the chunk of their partition, and waited for."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from struct import iter_unpack

from edge.delivery.publisher import Chunker, EventTuple
from edge.delivery.sink import Sink
from edge.delivery.spool import SpoolFull
from edge.http.errors import unavailable
from edge.validation.scheduling import ValidEvent
from schemas.ids import partition_of, project_seed
from schemas.payload import compress
from schemas.projects import Project


class EventPublisher:
    """Takes admitted events and says when they are safe."""

    def __init__(self, chunker: Chunker, sink: Sink) -> None:
        self._chunker = chunker
        self._sink = sink

    def put(self, project: Project, sdk: str, events: Sequence[ValidEvent]) -> list[asyncio.Future[None]]:
        """Hand events, each with its id, to their chunks; the futures end when those are safe."""
        number, received_ms = project.number, time.time_ns() // 1_000_000
        seed = project_seed(number)
        # Before Kafka was ever reached its partitions aren't known: one line, spread when it is drained.
        partitions = self._sink.partitions or 1
        lines: defaultdict[int, list[EventTuple]] = defaultdict(list)
        digits = "".join([event_id for event_id, _ in events]).replace("-", "")
        raw_ids = iter_unpack("16s", bytes.fromhex(digits))
        for (event_id, event), (raw_id,) in zip(events, raw_ids, strict=True):
            line = lines[partition_of(seed, event_id, partitions)]
            line.append((number, raw_id, received_ms, sdk, compress(event)))
        add_all = self._chunker.add_all
        return [chunk for partition, line in lines.items() for chunk in add_all(partition, partitions, line)]

    @staticmethod
    async def wait_stored(chunks: Iterable[asyncio.Future[None]]) -> None:
        """Return when all are safe. Raises Fault (503) where one isn't: what was sent comes again and is dropped by its id."""
        try:
            for chunk in chunks:
                # Shielded: a client that goes away must not take the chunk of others with it.
                await asyncio.shield(chunk)
        except SpoolFull:
            raise unavailable("spool full") from None
