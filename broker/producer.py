"""A producer of single records that can be abandoned without waiting for the broker.

It reaches into private parts of aiokafka; a test names them.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from aiokafka.errors import KafkaError, LeaderNotAvailableError

from broker.client import new_producer
from broker.types import TopicPartition
from schemas.settings import KafkaSettings
from schemas.topics import Topic

_BATCH_BYTES: Final = 16 * 1024
"""A topic's limit holds for a batch: larger ones could be refused for records of which each alone is small enough."""


class RecordProducer:
    """An idempotent producer with acks=all, not started. Raises OSError where the file of the CA can't be read."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._requests: set[asyncio.Task[Any]] = set()
        self._producer = new_producer(
            settings, linger_ms=0, max_batch_size=_BATCH_BYTES, metadata_max_age_ms=30_000
        )
        self._track_requests()

    async def start(self) -> None:
        """Connect. Raises KafkaError or OSError."""
        await self._producer.start()

    async def add(
        self,
        topic: str,
        value: bytes,
        key: bytes | None,
        partition: int | None,
        headers: list[tuple[str, bytes]] | None,
    ) -> "asyncio.Future[Any]":
        """Hand a record over; the future ends when it is acknowledged. Raises what aiokafka does, AssertionError included."""
        future: asyncio.Future[Any] = await self._producer.send(
            topic, value, key=key, partition=partition, headers=headers
        )
        return future

    async def led_partitions(self, names: Mapping[Topic, str]) -> int:
        """The number of partitions of `events`, once every partition of these topics has a leader. Raises KafkaError."""
        found = {}
        for topic, name in names.items():
            found[topic] = await self._producer.partitions_for(name)
            for partition in found[topic] or ():
                place = TopicPartition(name, partition)
                if self._producer.client.cluster.leader_for_partition(place) in {None, -1}:
                    raise LeaderNotAvailableError(name)
        if not found[Topic.EVENTS]:
            raise LeaderNotAvailableError(names[Topic.EVENTS])
        return len(found[Topic.EVENTS])

    async def flush(self, seconds: float) -> None:
        """Wait for what was sent, for so long; aiokafka's own stop waits for ever while the broker is away."""
        with suppress(TimeoutError, KafkaError):
            async with asyncio.timeout(seconds):
                await self._producer.flush()

    async def abandon(self) -> None:
        """Close without waiting for anything unsent."""
        requests, self._requests = self._requests, set()
        for task in (self._producer._sender._sender_task, *requests):
            if task is not None:
                task.cancel()
        self._producer._closed = True
        with suppress(KafkaError, OSError):
            await self._producer.client.close()

    def _track_requests(self) -> None:
        send = self._producer._sender._send_produce_req

        async def tracked(*args: Any) -> Any:
            # What is in flight when the producer is abandoned would wait for its request timeout: 30 s, holding its records.
            task = asyncio.current_task()
            assert task is not None
            self._requests.add(task)
            try:
                return await send(*args)
            finally:
                self._requests.discard(task)

        self._producer._sender._send_produce_req = tracked
