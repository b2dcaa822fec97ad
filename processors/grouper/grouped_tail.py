"""The replay boundary after a loss of `seen`, read from the end of `grouped`.

The end says which records of `events` were published last.
"""

import asyncio
import logging
import time
from contextlib import suppress
from typing import Final

from msgspec import DecodeError

from broker.client import PRODUCER_TIMEOUT_SECONDS, name_of, open_consumer, records_before
from broker.types import Consumer, TopicPartition
from processors.grouper.replay_start import PublishedRecord, ReplayBoundary
from schemas.chunks import REPLAYED_HEADER, decode_grouped
from schemas.settings import ProcessorsSettings
from schemas.topics import Topic

log = logging.getLogger(__name__)
MIN_REPLAYED: Final = 256
"""Fewest records that are replayed after a loss of `seen`: more than are handled together."""
TAIL_SECONDS: Final = 60.0
"""Longest time for reading the end of `grouped`."""


class GroupedTail:
    """Reads from the end of `grouped` which records of a partition of `events` were published."""

    def __init__(self, settings: ProcessorsSettings) -> None:
        self._settings = settings
        self._topic = name_of(settings, Topic.GROUPED)
        self._reach = max(MIN_REPLAYED, 2 * settings.processors_batch_chunks)

    async def read(
        self, partition: int, recorded: tuple[int, int] | None = None, assigned_at: float = 0.0
    ) -> ReplayBoundary | None:
        """The replay boundary of a partition, or None where nothing was published. Raises KafkaError and TimeoutError.

        `recorded` are `since` and `last` as an earlier process recorded them. Without them only `grouped`
        tells the decisions. It is read once everything sent before the partition was assigned, at the
        monotonic time `assigned_at`, must have arrived.
        """
        tp = TopicPartition(self._topic, partition)
        async with (
            open_consumer(self._settings) as consumer,
            asyncio.timeout(PRODUCER_TIMEOUT_SECONDS + TAIL_SECONDS),
        ):
            late = assigned_at + PRODUCER_TIMEOUT_SECONDS - time.monotonic()
            if recorded is None and late > 0 and (await consumer.end_offsets([tp]))[tp]:
                log.warning(
                    "the last decisions are missing in seen/%d: reading grouped in %.0f s",
                    partition,
                    late,
                    extra={"event": "decisions_lost"},
                )
                await asyncio.sleep(late)
            return await self._read(consumer, tp, recorded)

    async def _read(
        self, consumer: Consumer, tp: TopicPartition, recorded: tuple[int, int] | None
    ) -> ReplayBoundary | None:
        begin = (await consumer.beginning_offsets([tp]))[tp]
        end = (await consumer.end_offsets([tp]))[tp]
        if begin >= end:
            return None if recorded is None else ReplayBoundary(recorded[1] + 1, recorded[1])
        consumer.assign([tp])
        count = self._reach
        while True:
            # Replays after crashes are at the end: the records that they repeat must be among those read.
            count *= 2
            start = max(begin, end - count)
            records = await _published(consumer, tp, start, end)
            if not records and start > begin:
                continue
            if not records:
                return None if recorded is None else ReplayBoundary(recorded[1] + 1, recorded[1])
            boundary = (
                ReplayBoundary.recorded(*recorded, records)
                if recorded
                else ReplayBoundary.from_records(records, self._reach, whole=not begin)
            )
            if start == begin or min(record.offset for record in records) < boundary.since:
                return boundary


async def _published(consumer: Consumer, tp: TopicPartition, start: int, end: int) -> list[PublishedRecord]:
    consumer.seek(tp, start)
    records = [record async for record in records_before(consumer, {tp: end})]
    found: list[PublishedRecord] = []
    for record in records:
        # Events put back or sent again come as part of a record, at an old position.
        if record.value is not None and REPLAYED_HEADER not in dict(record.headers):
            with suppress(DecodeError):  # dead-lettered by the writer
                found.append(PublishedRecord.of(decode_grouped(record.value)))
    return found
