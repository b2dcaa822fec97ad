"""The values of records of `events`, for records of `grouped`: both logs have the same order.

A client without a group reads them one after the other, so each is fetched once.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from broker.client import name_of, open_consumer
from broker.errors import KafkaError, OffsetOutOfRangeError
from broker.types import Consumer, Record, TopicPartition
from schemas.chunks import REPLAYED_HEADER, SOURCE_HEADER
from schemas.settings import KafkaSettings
from schemas.topics import Topic

_FETCH_BYTES: Final = 16 * 1024 * 1024
_WAIT_MS: Final = 1000
_WAITS: Final = 30
MAX_GAP: Final = 500
"""Records without a new event that are read rather than skipped: a jump discards the records fetched ahead."""


class SourceValues:
    """Reads records of some partitions of `events`."""

    def __init__(self, consumer: Consumer, topic: str) -> None:
        self._consumer = consumer
        self._topic = topic
        # Where a log has ended for all the waits: a new leader may know an earlier end for a moment.
        self._ends: dict[TopicPartition, int] = {}

    async def of(self, records: Sequence[Record]) -> list[bytes | None]:
        """The value of each record's source; the records are of one partition of `grouped`.

        None where `events` no longer has the source, and for a record that was put back or is sent again: it has
        its events itself. Raises KafkaError when the broker doesn't deliver one that is there.
        """
        offsets = [_source(record) for record in records]
        wanted = sorted({offset for offset in offsets if offset is not None})
        found: dict[int, bytes] = {}
        for run in _runs(wanted):
            await self._read(TopicPartition(self._topic, records[0].partition), run, found)
        return [None if offset is None else found.get(offset) for offset in offsets]

    async def _read(self, tp: TopicPartition, offsets: Sequence[int], found: dict[int, bytes]) -> None:
        consumer, chosen, last, waits = self._consumer, set(offsets), offsets[-1], 0
        if not 0 <= offsets[0] - await consumer.position(tp) <= MAX_GAP:
            consumer.seek(tp, offsets[0])
        while (position := await consumer.position(tp)) <= last:
            try:
                batches = await consumer.getmany(tp, timeout_ms=_WAIT_MS, max_records=last - position + 1)
            except OffsetOutOfRangeError:
                begin = (await consumer.beginning_offsets([tp]))[tp]
                if not position < begin <= last:
                    # A topic that was recreated ends before, one that has expired begins after them.
                    return
                consumer.seek(tp, begin)
                continue
            waits = 0 if batches else waits + 1
            if waits > _WAITS or (waits and tp in self._ends):
                end = (await consumer.end_offsets([tp]))[tp]
                if end <= position and (waits > _WAITS or end == self._ends[tp]):
                    self._ends[tp] = end
                    return
                if waits > _WAITS:
                    raise KafkaError(f"records of {tp.topic}/{tp.partition} up to {last} are not delivered")
            for record in batches.get(tp, ()):
                if record.offset in chosen:
                    found[record.offset] = record.value or b""


@asynccontextmanager
async def open_source_values(
    settings: KafkaSettings, partitions: Iterable[int]
) -> AsyncIterator[SourceValues]:
    """A reader of these partitions of `events`. Raises KafkaError."""
    topic = name_of(settings, Topic.EVENTS)
    async with open_consumer(settings, auto_offset_reset="none", fetch_max_bytes=_FETCH_BYTES) as consumer:
        tps = [TopicPartition(topic, partition) for partition in partitions]
        consumer.assign(tps)
        # At the end nothing is fetched ahead, until the first record is wanted.
        for tp, end in (await consumer.end_offsets(tps)).items():
            consumer.seek(tp, end)
        yield SourceValues(consumer, topic)


def _source(record: Record) -> int | None:
    headers = dict(record.headers)
    position = headers.get(SOURCE_HEADER, b"").rpartition(b"/")[2]
    return int(position) if REPLAYED_HEADER not in headers and position.isdigit() else None


def _runs(offsets: Sequence[int]) -> Iterator[list[int]]:
    """The offsets, in pieces without a long gap."""
    run: list[int] = []
    for offset in offsets:
        if run and offset - run[-1] > MAX_GAP:
            yield run
            run = []
        run.append(offset)
    if run:
        yield run
