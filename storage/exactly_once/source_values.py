"""Looks up the record of `events` behind each record of `grouped`.

Both logs have the same order, so a client without a group reads `events` in sequence and fetches each record once.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

import msgspec

from broker.client import name_of, open_consumer
from broker.errors import KafkaError, OffsetOutOfRangeError
from broker.types import Consumer, Record, TopicPartition
from schemas.chunks import REPLAYED_HEADER, SOURCE_HEADER, decode_grouped
from schemas.settings import KafkaSettings
from schemas.topics import Topic

_FETCH_BYTES: Final = 16 * 1024 * 1024
_WAIT_MS: Final = 1000
_ANSWER_SECONDS: Final = 2.0
_SILENT_SECONDS: Final = 30.0
_SILENT_ANSWERS: Final = 20
"""A record counts as lost only after this many answers, over at least this long, that the log ends before it.

The same limits apply to a record that exists and isn't delivered.
"""
_DIGITS: Final = 18
MAX_GAP: Final = 500
"""Records without a new event that are read rather than skipped: a jump discards the records fetched ahead."""


class _Silence(NamedTuple):
    """A record that isn't delivered: whether the leader says the log has it, since when, and how many times."""

    is_there: bool
    since: float
    answers: int


class SourceValues:
    """Reads records of some partitions of `events`."""

    def __init__(self, consumer: Consumer, topic: str) -> None:
        self._consumer = consumer
        self._topic = topic
        self._clock = asyncio.get_running_loop().time
        # The values of an unfinished call, by offset: the next call asks only for the rest. None marks a lost source.
        self._found: dict[TopicPartition, dict[int, bytes | None]] = {}
        # Each log's first offset and when it was read: for a while, earlier records count as lost without a request.
        self._begins: dict[TopicPartition, tuple[int, float]] = {}
        self._silent: dict[TopicPartition, _Silence] = {}

    async def of(self, records: Sequence[Record]) -> list[bytes | None]:
        """As `delivered`, but waits. Raises KafkaError after a minute without an answer."""
        begun = self._clock()
        while (values := await self.delivered(records)) is None:
            if self._clock() - begun > 2 * _SILENT_SECONDS:
                raise KafkaError(
                    f"the sources of records of {records[0].topic}/{records[0].partition} are not delivered"
                )
            await asyncio.sleep(_WAIT_MS / 1000)
        return values

    async def prepare(self, records: Sequence[Record]) -> None:
        """Let the sources of these records be fetched, together with those of other partitions."""
        tp = TopicPartition(self._topic, records[0].partition)
        if offsets := [offset for record in records if (offset := _source(record)) is not None]:
            await self._go_to(tp, min(offsets))

    async def delivered(self, records: Sequence[Record]) -> list[bytes | None] | None:
        """The value of each record's source; the records are of one partition of `grouped`.

        A value is None where `events` no longer has the source, and for a record that has its events itself. Returns
        None if a broker is silent: ask again for the same records. Raises KafkaError.
        """
        offsets = [_source(record) for record in records]
        tp = TopicPartition(self._topic, records[0].partition)
        found = self._found.setdefault(tp, {})
        begin, at = self._begins.get(tp, (0, 0.0))
        if self._clock() - at < _SILENT_SECONDS:
            found |= {offset: None for offset in offsets if offset is not None and offset < begin}
        for run in _runs(sorted({offset for offset in offsets if offset is not None} - found.keys())):
            if not await self._read(tp, run, found):
                self._silent.setdefault(tp, _Silence(is_there=True, since=self._clock(), answers=0))
                return None
        del self._found[tp]
        return [None if offset is None else found[offset] for offset in offsets]

    async def _read(self, tp: TopicPartition, offsets: Sequence[int], found: dict[int, bytes | None]) -> bool:
        """Read until the last of these offsets is passed; False if the broker is silent."""
        consumer, chosen, last = self._consumer, set(offsets), offsets[-1]
        await self._go_to(tp, offsets[0])
        # After a silent call the client has fetched in the background: waiting again would delay other partitions.
        wait_ms = 0 if tp in self._silent else _WAIT_MS
        while (position := await consumer.position(tp)) <= last:
            try:
                batches = await consumer.getmany(tp, timeout_ms=wait_ms, max_records=last - position + 1)
            except OffsetOutOfRangeError:
                batches = {}
            if not batches and not await self._seek_past_lost(tp, position, last):
                return False
            wait_ms = _WAIT_MS
            for record in batches.get(tp, ()):
                self._silent.pop(tp, None)
                if record.offset in chosen:
                    found[record.offset] = record.value or b""
        for offset in offsets:
            found.setdefault(offset, None)
        return True

    async def _go_to(self, tp: TopicPartition, offset: int) -> None:
        if not 0 <= offset - await self._consumer.position(tp) <= MAX_GAP:
            self._consumer.seek(tp, offset)
        self._consumer.resume(tp)

    async def _seek_past_lost(self, tp: TopicPartition, position: int, last: int) -> bool:
        """Skip lost records from a position on; False if a broker may still deliver them.

        Those before the log's beginning have expired. Those beyond its end are lost if the topic was recreated. But a
        former leader that still answers knows an earlier end, and so does a new one for a moment.
        """
        consumer = self._consumer
        # Another broker may say that there is another leader.
        consumer._client.force_metadata_update()
        if consumer._client.cluster.leader_for_partition(tp) in {None, -1}:
            return False
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                begin = (await consumer.beginning_offsets([tp]))[tp]
                end = (await consumer.end_offsets([tp]))[tp]
        except TimeoutError:
            return False
        now, is_there = self._clock(), position < end
        if position < begin:
            self._begins[tp] = begin, now
            self._silent.pop(tp, None)
            consumer.seek(tp, min(begin, last + 1))
            return True
        silence = self._silent.get(tp)
        if silence is None or silence.is_there is not is_there:
            silence = _Silence(is_there, now, 0)
        silence = self._silent[tp] = silence._replace(answers=silence.answers + 1)
        if silence.answers < _SILENT_ANSWERS or now - silence.since < _SILENT_SECONDS:
            return False
        if is_there:
            raise KafkaError(f"records of {tp.topic}/{tp.partition} from {position} on are not delivered")
        del self._silent[tp]
        consumer.seek(tp, last + 1)
        return True


@asynccontextmanager
async def open_source_values(
    settings: KafkaSettings, partitions: Iterable[int]
) -> AsyncIterator[SourceValues]:
    """A reader of these partitions of `events`. Raises KafkaError."""
    topic = name_of(settings, Topic.EVENTS)
    async with open_consumer(settings, auto_offset_reset="none", fetch_max_bytes=_FETCH_BYTES) as consumer:
        tps = [TopicPartition(topic, partition) for partition in partitions]
        consumer.assign(tps)
        # Nothing is fetched until the first record of a partition is wanted. To ask for the ends of the logs would fail
        # where one partition has no leader.
        for tp in tps:
            consumer.seek(tp, 0)
        consumer.pause(*tps)
        yield SourceValues(consumer, topic)


def _source(record: Record) -> int | None:
    """The offset of a record's source, or None if it has its events itself."""
    headers = dict(record.headers)
    position = headers.get(SOURCE_HEADER, b"").rpartition(b"/")[2]
    # A longer number would be no offset.
    if (
        not position.isdigit()
        or len(position) > _DIGITS
        or (REPLAYED_HEADER in headers and _has_events(record))
    ):
        return None
    return int(position)


def _has_events(record: Record) -> bool:
    try:
        return bool(decode_grouped(record.value or b"").chunk)
    except msgspec.DecodeError:
        return False


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
