"""Gathers accepted events across requests into chunks, one line a partition: a record is what costs downstream.

A chunk leaves when it has enough events or bytes, or when its first event has waited for the linger time and no earlier
chunk of its partition is under way (as Nagle's algorithm does: the busier, the fuller).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

EventTuple = tuple[int, bytes, int, str, bytes]
"""A `schemas.chunks.ChunkEvent` as the tuple that is encoded alike and costs less to make."""

Deliver = Callable[[int, int, list[EventTuple]], Awaitable[None]]
"""(partition, number of partitions it was computed for, events): returns when they are safe."""


class ChunkLimits(Struct, frozen=True):
    """When a chunk is full: events, bytes of payload, and the longest wait in milliseconds."""

    events: int = 300
    bytes: int = 262_144
    linger_ms: float = 5.0


class _OpenChunk:
    """What has gathered for one partition."""

    def __init__(self) -> None:
        self.events: list[EventTuple] = []
        self.size = 0
        self.done: asyncio.Future[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.under_way = 0


class Chunker:
    """One loop's chunker; `add` and `add_all` return the futures of the chunks that the events will travel in."""

    def __init__(self, deliver: Deliver, limits: ChunkLimits) -> None:
        self._deliver = deliver
        self._limits = limits
        self._linger = limits.linger_ms / 1000
        self._lines: dict[tuple[int, int], _OpenChunk] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.waiting_events = 0

    def add(self, partition: int, partitions: int, event: EventTuple) -> asyncio.Future[None]:
        """Put an event into the chunk of its partition. The future ends with the chunk, or with what `deliver` raised."""
        (done,) = self.add_all(partition, partitions, (event,))
        return done

    def add_all(
        self, partition: int, partitions: int, events: Sequence[EventTuple]
    ) -> list[asyncio.Future[None]]:
        """Put one partition's events into chunks, in order; a future for each chunk that has one of them."""
        line = self._lines.get((partition, partitions))
        if line is None:
            line = self._lines[partition, partitions] = _OpenChunk()
        most_events, most_bytes = self._limits.events, self._limits.bytes
        size = sum([len(event[4]) for event in events])
        if events and len(line.events) + len(events) < most_events and line.size + size < most_bytes:
            # Nearly always: the chunk isn't full after these either.
            done = self._opened(partition, partitions, line)
            line.events += events
            line.size += size
            self.waiting_events += len(events)
            return [done]
        chunks: list[asyncio.Future[None]] = []
        open_chunk = False
        for event in events:
            if not open_chunk:
                chunks.append(self._opened(partition, partitions, line))
                open_chunk = True
            line.events.append(event)
            line.size += len(event[4])
            self.waiting_events += 1
            if line.size >= most_bytes or len(line.events) >= most_events:
                self._flush(partition, partitions, line)
                open_chunk = False
        return chunks

    def _opened(self, partition: int, partitions: int, line: _OpenChunk) -> asyncio.Future[None]:
        """The future of the chunk that the line gathers, a new one where there is none yet."""
        if line.done is None:
            loop = asyncio.get_running_loop()
            line.done = loop.create_future()
            if not line.under_way:
                line.timer = loop.call_later(self._linger, self._flush, partition, partitions, line)
        return line.done

    async def stop(self) -> None:
        """Send what has gathered and wait until it has ended."""
        while self._tasks or any(line.events for line in self._lines.values()):
            for (partition, partitions), line in self._lines.items():
                self._flush(partition, partitions, line)
            if self._tasks:
                await asyncio.wait(self._tasks)

    def _flush(self, partition: int, partitions: int, line: _OpenChunk) -> None:
        if line.timer is not None:
            line.timer.cancel()
            line.timer = None
        done = line.done
        if done is None:
            return
        events, line.events, line.size, line.done = line.events, [], 0, None
        line.under_way += 1
        task = asyncio.create_task(self._send(partition, partitions, line, events, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(
        self,
        partition: int,
        partitions: int,
        line: _OpenChunk,
        events: list[EventTuple],
        done: asyncio.Future[None],
    ) -> None:
        try:
            await self._deliver(partition, partitions, events)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # handed to every request that waits
            done.set_exception(error)
            # A client that went away asks no more: without this the loop would complain about it.
            done.exception()
        else:
            done.set_result(None)
        finally:
            self.waiting_events -= len(events)
            line.under_way -= 1
            if not line.under_way and line.done is not None and line.timer is None:
                self._flush(partition, partitions, line)
