"""Publishes valid events: compresses each, collects them into the chunk of their partition, and stores the chunks.

A chunk is a Kafka record. It goes to the sink, or to the spool while the sink is unavailable (contract, section 2, point 9).
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from struct import iter_unpack

from msgspec import Struct

from broker.errors import RecordTooLarge, SinkUnavailable
from edge.delivery.sink import Sink
from edge.delivery.spool import Spool, SpoolFull
from edge.request_errors import unavailable
from edge.validation.validate import ValidEvent
from schemas.chunks import encode_chunk
from schemas.ids import partition_of, project_seed
from schemas.payload import compress
from schemas.projects import Project
from schemas.topics import Topic

EventTuple = tuple[int, bytes, int, str, bytes]
"""A `schemas.chunks.ChunkEvent` as a tuple: encoded identically, and cheaper to create."""

Deliver = Callable[[int, int, list[EventTuple]], Awaitable[None]]
"""(partition, partition count for which it was computed, events): returns when they are on stable storage."""


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
            group.append((number, raw_id, received_ms, sdk, compress(event)))
        add_all = self._chunker.add_all
        return [
            chunk
            for partition, group in by_partition.items()
            for chunk in add_all(partition, partitions, group)
        ]

    @staticmethod
    async def wait_stored(chunks: Iterable[asyncio.Future[None]]) -> None:
        """Return when all chunks are stored. Raises RequestError (503) if one isn't: the retry is deduplicated by event id."""
        try:
            for chunk in chunks:
                # Shielded: a client that disconnects must not cancel a chunk that it shares with others.
                await asyncio.shield(chunk)
        except SpoolFull:
            raise unavailable("spool full") from None


class ChunkLimits(Struct, frozen=True):
    """Limits of a chunk: events, payload bytes, and milliseconds that its first event may wait."""

    events: int = 300
    bytes: int = 262_144
    linger_ms: float = 5.0


class _PartitionBuffer:
    """The open chunk of one partition, and the number of its chunks `in_flight`."""

    def __init__(self) -> None:
        self.events: list[EventTuple] = []
        self.size = 0
        self.done: asyncio.Future[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.in_flight = 0


class Chunker:
    """Collects accepted events across requests into one chunk per partition: downstream costs are per record.

    A chunk is sent when it has enough events or bytes, or when its first event has waited for the linger time and no earlier
    chunk of its partition is in flight (Nagle's algorithm: the higher the load, the fuller the chunks).
    """

    def __init__(self, deliver: Deliver, limits: ChunkLimits) -> None:
        self._deliver = deliver
        self._limits = limits
        self._linger = limits.linger_ms / 1000
        self._buffers: dict[tuple[int, int], _PartitionBuffer] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.waiting_events = 0

    def add(self, partition: int, partitions: int, event: EventTuple) -> asyncio.Future[None]:
        """Add an event to the chunk of its partition; the future completes with the chunk, or fails with the error of `deliver`."""
        (done,) = self.add_all(partition, partitions, (event,))
        return done

    def add_all(
        self, partition: int, partitions: int, events: Sequence[EventTuple]
    ) -> list[asyncio.Future[None]]:
        """Add events of one partition to chunks, in order; returns a future for each chunk that contains one of them."""
        buffer = self._buffers.get((partition, partitions))
        if buffer is None:
            buffer = self._buffers[partition, partitions] = _PartitionBuffer()
        max_events, max_bytes = self._limits.events, self._limits.bytes
        size = sum([len(event[4]) for event in events])
        if events and len(buffer.events) + len(events) < max_events and buffer.size + size < max_bytes:
            # The usual case: the chunk isn't full afterwards.
            done = self._open_chunk(partition, partitions, buffer)
            buffer.events += events
            buffer.size += size
            self.waiting_events += len(events)
            return [done]
        chunks: list[asyncio.Future[None]] = []
        is_open = False
        for event in events:
            if not is_open:
                chunks.append(self._open_chunk(partition, partitions, buffer))
                is_open = True
            buffer.events.append(event)
            buffer.size += len(event[4])
            self.waiting_events += 1
            if buffer.size >= max_bytes or len(buffer.events) >= max_events:
                self._flush(partition, partitions, buffer)
                is_open = False
        return chunks

    def _open_chunk(self, partition: int, partitions: int, buffer: _PartitionBuffer) -> asyncio.Future[None]:
        """The future of the open chunk, opened if necessary."""
        if buffer.done is None:
            loop = asyncio.get_running_loop()
            buffer.done = loop.create_future()
            if not buffer.in_flight:
                buffer.timer = loop.call_later(self._linger, self._flush, partition, partitions, buffer)
        return buffer.done

    async def stop(self) -> None:
        """Send all open chunks and wait for every chunk in flight."""
        while self._tasks or any(buffer.events for buffer in self._buffers.values()):
            for (partition, partitions), buffer in self._buffers.items():
                self._flush(partition, partitions, buffer)
            if self._tasks:
                await asyncio.wait(self._tasks)

    def _flush(self, partition: int, partitions: int, buffer: _PartitionBuffer) -> None:
        if buffer.timer is not None:
            buffer.timer.cancel()
            buffer.timer = None
        done = buffer.done
        if done is None:
            return
        events, buffer.events, buffer.size, buffer.done = buffer.events, [], 0, None
        buffer.in_flight += 1
        task = asyncio.create_task(self._send(partition, partitions, buffer, events, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(
        self,
        partition: int,
        partitions: int,
        buffer: _PartitionBuffer,
        events: list[EventTuple],
        done: asyncio.Future[None],
    ) -> None:
        try:
            await self._deliver(partition, partitions, events)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # passed to every waiting request
            done.set_exception(error)
            # If every client has disconnected nobody retrieves the error: without this the loop would log it.
            done.exception()
        else:
            done.set_result(None)
        finally:
            self.waiting_events -= len(events)
            buffer.in_flight -= 1
            if not buffer.in_flight and buffer.done is not None and buffer.timer is None:
                self._flush(partition, partitions, buffer)


class ChunkDelivery:
    """Writes chunks to the sink, or to the spool while the sink is unavailable."""

    def __init__(self, sink: Sink, spool: Spool) -> None:
        self._sink = sink
        self._spool = spool
        self.spooled_events = 0

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
            self.spooled_events += len(remaining)


async def send_partitioned(sink: Sink, events: Iterable[EventTuple]) -> list[EventTuple]:
    """Send each event to its partition; returns the events that are too large for the topic. Raises SinkUnavailable."""
    by_partition: defaultdict[int, list[EventTuple]] = defaultdict(list)
    for event in events:
        digits = event[1].hex()
        event_id = f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
        by_partition[partition_of(project_seed(event[0]), event_id, sink.partitions)].append(event)
    too_large = await asyncio.gather(
        *[send_chunk(sink, partition, chunk) for partition, chunk in by_partition.items()]
    )
    return [event for events in too_large for event in events]


async def send_chunk(sink: Sink, partition: int, events: list[EventTuple]) -> list[EventTuple]:
    """Send events as one record, halved as often as the topic's size limit requires; returns the events that are too large.

    Raises SinkUnavailable; some of the events may have been written by then.
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
