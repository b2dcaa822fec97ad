"""Writing to Kafka: whole batches by a producer of our own, which costs a fraction of one send a record."""

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
    """A batch that all in-sync replicas have: offsets of its first and last record."""

    first: int
    last: int


class BatchProducer:
    """An idempotent producer. A failed write is not repeated here: the worker stops and starts again from its positions.

    `allowed` is asked before each batch and raises Lost where the worker's lease has run out.
    """

    def __init__(self, settings: KafkaSettings, allowed: Callable[[], None] = lambda: None) -> None:
        self._settings = settings
        self._allowed = allowed
        self._producer: Producer | None = None

    async def start(self) -> None:
        """Connect. Raises KafkaError."""
        self._producer = new_producer(self._settings, linger_ms=0, max_batch_size=BATCH_BYTES)
        await self._producer.start()

    async def stop(self) -> None:
        """Disconnect; what is not acknowledged by now is abandoned."""
        if self._producer is not None:
            await self._producer.stop()
            self._producer = None

    async def write(self, topic: str, partition: int, messages: Sequence[Message]) -> list[WrittenBatch]:
        """Write records in order and wait for their acknowledgement. Raises KafkaError, or PartitionsLost."""
        return [await written for written in await self.begin(topic, partition, messages)]

    async def begin(
        self, topic: str, partition: int, messages: Iterable[Message]
    ) -> list[Awaitable[WrittenBatch]]:
        """Hand records over in order; what is returned waits for their acknowledgement. Raises PartitionsLost."""
        assert self._producer is not None
        self._allowed()
        now = int(time.time() * 1000)
        begun: list[Awaitable[WrittenBatch]] = []
        batch, count = self._producer.create_batch(), 0
        for key, value, headers in messages:
            if batch.append(key=key, value=value, timestamp=now, headers=list(headers)) is None:
                begun.append(await self._send(batch, topic, partition, count))
                batch, count = self._producer.create_batch(), 0
                batch.append(key=key, value=value, timestamp=now, headers=list(headers))
            count += 1
        if count:
            begun.append(await self._send(batch, topic, partition, count))
        return begun

    async def _send(self, batch: Any, topic: str, partition: int, count: int) -> Awaitable[WrittenBatch]:
        assert self._producer is not None
        batch.close()
        return _Sent(await self._producer.send_batch(batch, topic, partition=partition), count)


class _Sent:
    """A batch that was handed over; awaited, it is Written. One that nobody awaits, because another failed, says nothing."""

    def __init__(self, sent: "asyncio.Future[Any]", count: int) -> None:
        sent.add_done_callback(_look_at)
        self._sent = sent
        self._count = count

    def __await__(self) -> Generator[Any, None, WrittenBatch]:
        first = (yield from self._sent.__await__()).offset
        return WrittenBatch(first, first + self._count - 1)


def _look_at(sent: "asyncio.Future[Any]") -> None:
    if not sent.cancelled():
        sent.exception()
