"""Polls the log end offsets of the source partitions with a separate client.

A consumer only knows the end from its last fetch. If it no longer fetches, or fetches from a stale leader,
there seems to be no lag. A separate client doesn't share these failures.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Final

from aiokafka.errors import KafkaError

from broker.client import new_consumer
from broker.closing import stop_consumer
from broker.types import Consumer, TopicPartition
from schemas.settings import KafkaSettings

log = logging.getLogger(__name__)

POLL_SECONDS: Final = 10.0
"""Interval of the requests, and their timeout."""


class LogEndOffsets:
    """Polls while `run` runs.

    `answers` counts the responses, `latest` is the last known end of each (topic, partition).
    """

    def __init__(self, settings: KafkaSettings, assigned: Callable[[], Collection[tuple[str, int]]]) -> None:
        self._settings = settings
        self._assigned = assigned
        self._consumer: Consumer | None = None
        self.answers = 0
        self.latest: dict[tuple[str, int], int] = {}

    async def run(self) -> None:
        """Poll until cancelled. A missing response raises nothing: `answers` stops increasing."""
        try:
            while True:
                try:
                    async with asyncio.timeout(POLL_SECONDS):
                        await self._poll()
                except (KafkaError, OSError, TimeoutError) as error:
                    log.warning(
                        "can't read the end offsets of the source topics, retrying: %s",
                        str(error) or "no response",
                        extra={"event": "end_offsets_read_failed"},
                    )
                    await self._close()
                await asyncio.sleep(POLL_SECONDS)
        finally:
            await self._close()

    async def _poll(self) -> None:
        if self._consumer is None:
            self._consumer = new_consumer(self._settings)
            await self._consumer.start()
        partitions = [TopicPartition(*assigned) for assigned in self._assigned()]
        ends = await self._consumer.end_offsets(partitions) if partitions else {}
        self.latest = {(tp.topic, tp.partition): end for tp, end in ends.items()}
        self.answers += 1

    async def _close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            with suppress(KafkaError, OSError, TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await stop_consumer(consumer)
