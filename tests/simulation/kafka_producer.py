"""aiokafka's producer on the model of a broker."""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from aiokafka.errors import (
    KafkaTimeoutError,
    LeaderNotAvailableError,
    MessageSizeTooLargeError,
    OutOfOrderSequenceNumber,
)
from aiokafka.structs import TopicPartition

from tests.simulation.kafka import LogRecord, NewRecord
from tests.simulation.kafka_clients import Client, Unused


class Batch:
    """A batch under construction."""

    def __init__(self, limit: int) -> None:
        self.records: list[NewRecord] = []
        self._limit = limit
        self._size = 0

    def append(
        self,
        *,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> object | None:
        """Add a record; None where it doesn't fit."""
        size = len(key or b"") + len(value or b"") + 64
        if self.records and self._size + size > self._limit:
            return None
        self._size += size
        self.records.append(NewRecord(timestamp, key, value, tuple(headers)))
        return self

    def close(self) -> None:
        """End it."""


class Producer(Client):
    """AIOKafkaProducer."""

    _ids = iter(range(1, 1 << 60))

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self._seconds = options.get("request_timeout_ms", 40_000) / 1000
        self._batch_bytes = options.get("max_batch_size", 16384)
        self._id = next(self._ids) if options.get("enable_idempotence", True) else None
        self._sequences: dict[TopicPartition, int] = {}
        self._queues: dict[TopicPartition, deque[tuple[list[NewRecord], asyncio.Future[Any]]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._broken = False
        self._closed = False
        self.client = Unused()
        self._sender = Unused()

    async def start(self) -> None:
        """Connect. Raises KafkaConnectionError."""
        await self._send(lambda: None)

    async def stop(self) -> None:
        """Send the remaining records and close."""
        if not self._closed:
            self._closed = True
            await self.flush()

    async def flush(self) -> None:
        """Wait for everything sent."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def partitions_for(self, topic: str) -> set[int]:
        """The partitions of a topic."""
        return await self._ask(lambda: set(range(len(self.broker.topics.get(topic, ())))))

    def create_batch(self) -> Batch:
        """A new batch."""
        return Batch(self._batch_bytes)

    async def send_batch(self, batch: Batch, topic: str, *, partition: int) -> "asyncio.Future[Any]":
        """Send a batch; the future gives its metadata."""
        return self._enqueue(TopicPartition(topic, partition), batch.records)

    async def send(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Sequence[tuple[str, bytes]] | None = None,
    ) -> "asyncio.Future[Any]":
        """Send a record."""
        at = int(time.time() * 1000) if timestamp_ms is None else timestamp_ms
        count = len(self.broker.topics[topic])
        where = partition if partition is not None else self._spread(key, count)
        return self._enqueue(TopicPartition(topic, where), [NewRecord(at, key, value, tuple(headers or ()))])

    async def send_and_wait(self, *arguments: Any, **options: Any) -> Any:
        """Send a record and wait until the broker has it."""
        return await (await self.send(*arguments, **options))

    def _spread(self, key: bytes | None, count: int) -> int:
        return sum(key) % count if key else self.world.random.randrange(count)

    def _enqueue(self, tp: TopicPartition, records: list[NewRecord]) -> "asyncio.Future[Any]":
        future: asyncio.Future[Any] = self._loop.create_future()
        queue = self._queues.setdefault(tp, deque())
        queue.append((records, future))
        if len(queue) == 1:
            task = self._loop.create_task(self._deliver(tp, queue))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return future

    async def _produce(self, tp: TopicPartition, sequence: int, records: list[NewRecord]) -> int:
        if self._broken:
            raise OutOfOrderSequenceNumber
        while True:
            try:
                return await self._ask(
                    lambda: self.broker.produce(tp, self._id, sequence, records),
                    self._seconds,
                    may_be_late=True,
                )
            except KafkaTimeoutError:
                # An idempotent producer repeats a batch without end, unless the partition has no leader.
                if self._id is None:
                    raise
                if not self.network.has_leader():
                    raise LeaderNotAvailableError from None

    async def _deliver(
        self, tp: TopicPartition, queue: "deque[tuple[list[NewRecord], asyncio.Future[Any]]]"
    ) -> None:
        while queue:
            records, future = queue[0]
            sequence = self._sequences[tp] = self._sequences.get(tp, -1) + 1
            try:
                first = await self._produce(tp, sequence, records)
            except Exception as error:  # noqa: BLE001 - passed on
                # A batch that is given up or refused leaves an idempotent producer out of sequence.
                self._broken |= isinstance(error, (LeaderNotAvailableError, MessageSizeTooLargeError))
                if not future.done():
                    future.set_exception(error)
                    future.exception()
            else:
                if not future.done():
                    future.set_result(LogRecord(tp.topic, tp.partition, first, 0, None, None, ()))
            queue.popleft()
