"""Writes whole batches to Kafka, which costs a fraction of one send per record."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from typing import Any, Final, NamedTuple

from broker.client import new_producer
from broker.message import Message
from broker.types import Producer
from schemas.settings import KafkaSettings

BATCH_BYTES: Final = 1 << 20


class WrittenBatch(NamedTuple):
    """A batch that all in-sync replicas have: the offsets of its first and last record."""

    first: int
    last: int


class BatchProducer:
    """An idempotent producer. It doesn't retry a failed write: the worker restarts from its positions.

    `check_lease` is called before each write and raises PartitionsLost if the worker's lease has expired.
    """

    def __init__(self, settings: KafkaSettings, check_lease: Callable[[], None] = lambda: None) -> None:
        self._settings = settings
        self._check_lease = check_lease
        self._producer: Producer | None = None

    async def start(self) -> None:
        """Connect. Raises KafkaError."""
        self._producer = new_producer(self._settings, linger_ms=0, max_batch_size=BATCH_BYTES)
        await self._producer.start()

    async def stop(self) -> None:
        """Disconnect, without waiting for unacknowledged records."""
        if self._producer is not None:
            await self._producer.stop()
            self._producer = None

    async def write(self, topic: str, partition: int, messages: Sequence[Message]) -> list[WrittenBatch]:
        """Write records in order and wait for their acknowledgement. Raises KafkaError or PartitionsLost."""
        return [await written for written in await self.begin(topic, partition, messages)]

    async def begin(
        self, topic: str, partition: int, messages: Iterable[Message]
    ) -> list[Awaitable[WrittenBatch]]:
        """Start to write records in order. Raises PartitionsLost.

        Each returned awaitable waits for the acknowledgement of a batch.
        """
        assert self._producer is not None
        self._check_lease()
        now = int(time.time() * 1000)
        pending: list[Awaitable[WrittenBatch]] = []
        batch, count = self._producer.create_batch(), 0
        for key, value, headers in messages:
            if batch.append(key=key, value=value, timestamp=now, headers=list(headers)) is None:
                pending.append(await self._send(batch, topic, partition, count))
                batch, count = self._producer.create_batch(), 0
                batch.append(key=key, value=value, timestamp=now, headers=list(headers))
            count += 1
        if count:
            pending.append(await self._send(batch, topic, partition, count))
        return pending

    async def _send(self, batch: Any, topic: str, partition: int, count: int) -> Awaitable[WrittenBatch]:
        assert self._producer is not None
        batch.close()
        return _PendingBatch(await self._producer.send_batch(batch, topic, partition=partition), count)


class _PendingBatch:
    """A batch in flight; awaiting it returns the WrittenBatch.

    If it isn't awaited, because another batch failed, its error isn't logged.
    """

    def __init__(self, sent: "asyncio.Future[Any]", count: int) -> None:
        sent.add_done_callback(_retrieve_error)
        self._sent = sent
        self._count = count

    def __await__(self) -> Generator[Any, None, WrittenBatch]:
        first = (yield from self._sent.__await__()).offset
        return WrittenBatch(first, first + self._count - 1)


def _retrieve_error(sent: "asyncio.Future[Any]") -> None:
    if not sent.cancelled():
        sent.exception()
