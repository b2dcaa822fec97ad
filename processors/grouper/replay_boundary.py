"""What was forwarded before the topic `seen` was emptied, as the topic `grouped` tells it.

Ids can be taken up again from `events`, but decisions can't: under rules that have changed since, an event would get another
fingerprint and be counted in two issues. What stands in `grouped` was decided, and all before it; so up to its last source position
records are only looked through for ids. But the last take may not have been forwarded wholly, so the last records of all are forwarded again,
with the fingerprints that stand there.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from zlib import crc32

from aiokafka import AIOKafkaConsumer, TopicPartition

from broker.client import reading
from processors.topic_names import Names
from schemas.chunks import GroupedChunk, decode_grouped
from schemas.settings import ProcessorsSettings

LEAST_REACH: Final = 256
"""Records that are forwarded again at least: more than are handled together."""
ANSWER_SECONDS: Final = 60.0
_POLL_MS: Final = 500


class Told(NamedTuple):
    """A record of `grouped`: the fingerprint of each event in it by position in its source, whose value has this CRC-32."""

    offset: int
    values: Mapping[int, int]
    crc: int

    @staticmethod
    def of(grouped: GroupedChunk) -> "Told":
        """What a record tells."""
        values = [grouped.groupings[place].fingerprint for place in grouped.grouping_of]
        return Told(grouped.offset, dict(zip(grouped.kept, values, strict=True)), crc32(grouped.chunk))


class Past(NamedTuple):
    """Records up to `last` were decided before, those before `since` forwarded too.

    `told` is what stands in `grouped` of the others, by source offset: no other events of them were forwarded.
    """

    since: int = 0
    last: int = -1
    told: Mapping[int, Told] = {}

    @staticmethod
    def by(records: Sequence[Told], reach: int, *, whole: bool) -> "Past":
        """What the last records of `grouped` tell; `whole` says that nothing before them has expired."""
        last = max(record.offset for record in records)
        # Before the first one that is left, what has no record may have had one.
        first = 0 if whole else min(record.offset for record in records)
        return Past.known(max(first, last - reach + 1), last, records)

    @staticmethod
    def known(since: int, last: int, records: Sequence[Told]) -> "Past":
        """The same with places that were found before. Of repeats the first counts, as for all readers."""
        last = max([last, *(record.offset for record in records)])
        return Past(since, last, {one.offset: one for one in reversed(records) if one.offset >= since})


class GroupedTail:
    """Reads the end of `grouped`."""

    def __init__(self, settings: ProcessorsSettings, names: Names) -> None:
        self._settings = settings
        self._topic = names.grouped
        self._reach = max(LEAST_REACH, 2 * settings.processors_take_chunks)

    async def read(self, partition: int, known: tuple[int, int] | None = None) -> Past | None:
        """What it tells of a partition, or None where nothing stands there. Raises KafkaError and TimeoutError.

        `known` are `since` and `last` as an earlier process has found them.
        """
        async with reading(self._settings) as consumer, asyncio.timeout(ANSWER_SECONDS):
            return await self._read(consumer, TopicPartition(self._topic, partition), known)

    async def _read(
        self, consumer: AIOKafkaConsumer, place: TopicPartition, known: tuple[int, int] | None
    ) -> Past | None:
        begin = (await consumer.beginning_offsets([place]))[place]
        end = (await consumer.end_offsets([place]))[place]
        if begin >= end:
            return None if known is None else Past(known[1] + 1, known[1])
        consumer.assign([place])
        many = self._reach
        while True:
            # Repeats after crashes stand at the end: what they repeat must be among what is read.
            many *= 2
            start = max(begin, end - many)
            records = await _between(consumer, place, start, end)
            found = Past.known(*known, records) if known else Past.by(records, self._reach, whole=not begin)
            if start == begin or min(record.offset for record in records) < found.since:
                return found


async def _between(consumer: AIOKafkaConsumer, place: TopicPartition, start: int, end: int) -> list[Told]:
    consumer.seek(place, start)
    found: list[Told] = []
    at = start
    while at < end:
        for records in (await consumer.getmany(place, timeout_ms=_POLL_MS)).values():
            found += [
                Told.of(decode_grouped(r.value)) for r in records if r.value is not None and r.offset < end
            ]
            at = records[-1].offset + 1
    return found
