"""A producer of single records that can be closed without waiting for the broker.

It uses private parts of aiokafka; a test names them.
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
"""A topic's size limit applies to batches: larger batches could be refused although each record is small
enough."""


class RecordProducer:
    """An idempotent producer with acks=all, not started. Raises OSError if the CA file can't be read."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._requests: set[asyncio.Task[Any]] = set()
        self._producer = new_producer(settings, linger_ms=0, max_batch_size=_BATCH_BYTES)
        self._track_requests()

    async def start(self) -> None:
        """Connect. Raises KafkaError or OSError."""
        await self._producer.start()

    async def enqueue(
        self,
        topic: str,
        value: bytes,
        key: bytes | None,
        partition: int | None,
        headers: list[tuple[str, bytes]] | None,
    ) -> "asyncio.Future[Any]":
        """Send a record; the future completes on its acknowledgement.

        Raises aiokafka's errors, including AssertionError.
        """
        future: asyncio.Future[Any] = await self._producer.send(
            topic, value, key=key, partition=partition, headers=headers
        )
        return future

    async def led_partitions(self, names: Mapping[Topic, str]) -> int:
        """The number of partitions of `events`, once every partition of these topics has a leader.

        Raises KafkaError.
        """
        partitions = {}
        for topic, name in names.items():
            partitions[topic] = await self._producer.partitions_for(name)
            for partition in partitions[topic] or ():
                tp = TopicPartition(name, partition)
                if self._producer.client.cluster.leader_for_partition(tp) in {None, -1}:
                    raise LeaderNotAvailableError(name)
        if not partitions[Topic.EVENTS]:
            raise LeaderNotAvailableError(names[Topic.EVENTS])
        return len(partitions[Topic.EVENTS])

    async def flush(self, seconds: float) -> None:
        """Wait for sent records, with a timeout.

        aiokafka's `stop` never returns while the broker is unavailable.
        """
        with suppress(TimeoutError, KafkaError):
            async with asyncio.timeout(seconds):
                await self._producer.flush()

    async def abandon(self) -> None:
        """Close without waiting for unsent records."""
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
            # Without a cancellation, requests of an abandoned producer keep their records until the request
            # timeout of 30 s.
            task = asyncio.current_task()
            assert task is not None
            self._requests.add(task)
            try:
                return await send(*args)
            finally:
                self._requests.discard(task)

        self._producer._sender._send_produce_req = tracked
