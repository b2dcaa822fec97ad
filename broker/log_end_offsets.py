"""Where the source partitions end, asked of the brokers themselves.

A consumer only knows what its last fetch answered: where fetching has ended, was never resumed or goes to a stale leader, nothing
seems to wait. So a client of our own asks, which nothing of that can befall together.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Final

from aiokafka.errors import KafkaError

from broker.client import new_consumer
from broker.types import Consumer, TopicPartition
from schemas.settings import KafkaSettings

log = logging.getLogger(__name__)

ASK_SECONDS: Final = 10.0
"""Between two questions, and the longest wait for an answer."""


class LogEndOffsets:
    """Asks for as long as `run` runs. `answers` counts, `latest` is the last known end of each partition (topic, partition)."""

    def __init__(self, settings: KafkaSettings, held: Callable[[], Collection[tuple[str, int]]]) -> None:
        self._settings = settings
        self._held = held
        self._consumer: Consumer | None = None
        self.answers = 0
        self.latest: dict[tuple[str, int], int] = {}

    async def run(self) -> None:
        """Ask until cancelled. No answer is no failure here: whoever looks sees that `answers` stands still."""
        try:
            while True:
                try:
                    async with asyncio.timeout(ASK_SECONDS):
                        await self._ask()
                except (KafkaError, OSError, TimeoutError) as error:
                    log.warning("where the source topics end is not known: %s", str(error) or "no answer")
                    await self._close()
                await asyncio.sleep(ASK_SECONDS)
        finally:
            await self._close()

    async def _ask(self) -> None:
        if self._consumer is None:
            self._consumer = new_consumer(self._settings)
            await self._consumer.start()
        places = [TopicPartition(*place) for place in self._held()]
        found = await self._consumer.end_offsets(places) if places else {}
        self.latest = {(place.topic, place.partition): end for place, end in found.items()}
        self.answers += 1

    async def _close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            with suppress(KafkaError, OSError, TimeoutError):
                async with asyncio.timeout(ASK_SECONDS):
                    await consumer.stop()
