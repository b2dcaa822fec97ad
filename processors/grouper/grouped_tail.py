"""Reads from the end of `grouped` what was forwarded of a partition of `events`."""

import asyncio
from typing import Final

from broker.client import reading, records_before
from broker.types import Consumer, TopicPartition
from processors.grouper.replay import ForwardedRecord, ReplayBoundary
from processors.topic_names import TopicNames
from schemas.chunks import decode_grouped
from schemas.settings import ProcessorsSettings

LEAST_REACH: Final = 256
"""Records that are forwarded again at least: more than are handled together."""
ANSWER_SECONDS: Final = 60.0


class GroupedTail:
    """Reads the end of `grouped`."""

    def __init__(self, settings: ProcessorsSettings, names: TopicNames) -> None:
        self._settings = settings
        self._topic = names.grouped
        self._reach = max(LEAST_REACH, 2 * settings.processors_take_chunks)

    async def read(self, partition: int, known: tuple[int, int] | None = None) -> ReplayBoundary | None:
        """What it tells of a partition, or None where nothing stands there. Raises KafkaError and TimeoutError.

        `known` are `since` and `last` as an earlier process has found them.
        """
        async with reading(self._settings) as consumer, asyncio.timeout(ANSWER_SECONDS):
            return await self._read(consumer, TopicPartition(self._topic, partition), known)

    async def _read(
        self, consumer: Consumer, place: TopicPartition, known: tuple[int, int] | None
    ) -> ReplayBoundary | None:
        begin = (await consumer.beginning_offsets([place]))[place]
        end = (await consumer.end_offsets([place]))[place]
        if begin >= end:
            return None if known is None else ReplayBoundary(known[1] + 1, known[1])
        consumer.assign([place])
        many = self._reach
        while True:
            # Repeats after crashes stand at the end: what they repeat must be among what is read.
            many *= 2
            start = max(begin, end - many)
            records = await _between(consumer, place, start, end)
            found = (
                ReplayBoundary.known(*known, records)
                if known
                else ReplayBoundary.by(records, self._reach, whole=not begin)
            )
            if start == begin or min(record.offset for record in records) < found.since:
                return found


async def _between(consumer: Consumer, place: TopicPartition, start: int, end: int) -> list[ForwardedRecord]:
    consumer.seek(place, start)
    records = [record async for record in records_before(consumer, {place: end})]
    return [
        ForwardedRecord.of(decode_grouped(record.value)) for record in records if record.value is not None
    ]
