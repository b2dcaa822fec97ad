"""A block that grows record by record, dropping what a processor sent again. Pure."""

from bisect import bisect_right
from operator import itemgetter
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from schemas.chunks import ChunkEvent, GroupedChunk, Grouping, decode_chunk, decode_grouped
from schemas.errors import BadPayload, Unreadable
from storage.writer.event_rows import EventColumns
from storage.writer.manifest import BlockManifest, RecordRange

REPLAYED_HEADER: Final = "replayed"
"""Marks a record that was put back from the dead letters: its source position is old and says nothing.

Its value says where its one event was set aside and counted, as `partition/offset`, or `WHOLE`.
"""
WHOLE: Final = b"whole"
"""A record that couldn't be read at all, so that none of its events was counted as a dead letter."""
Headers = tuple[tuple[str, bytes], ...]


class Retention(Protocol):
    """For how many days a project keeps events and payloads."""

    def days(self, project: int) -> tuple[int, int]:
        """Days of the events and of their payloads."""


class Record(Protocol):
    """What a block needs of a Kafka record."""

    @property
    def partition(self) -> int: ...  # noqa: D102
    @property
    def offset(self) -> int: ...  # noqa: D102
    @property
    def value(self) -> bytes | None: ...  # noqa: D102
    @property
    def headers(self) -> Headers: ...  # noqa: D102


class RejectedRecord(Struct, frozen=True):
    """What can't be written: a whole record, or one event of it, which `value` then holds alone. `kind` is a stable word."""

    partition: int
    offset: int
    kind: str
    reason: str
    value: bytes
    headers: Headers
    event: ChunkEvent | None = None


class PutBack(Struct, frozen=True):
    """An event that had been counted as a dead letter and came back; `origin` is the place where it was set aside."""

    event: ChunkEvent
    origin: str


class Block:
    """Rows of consecutive records of some partitions; `repeats` counts the records that were dropped.

    `seen` holds the last source position of each partition that has a record here, `oldest_ms` the first receipt of an event.
    `by_id` says that some rows may be stored already, so that their ids decide: from the dead letters, or read again.
    """

    def __init__(self, retention: Retention) -> None:
        self.columns = EventColumns()
        self.refused: list[RejectedRecord] = []
        self.put_back: list[PutBack] = []
        self.by_id = False
        self.seen: dict[int, int] = {}
        self.records = 0
        self.repeats = 0
        self.oldest_ms = 1 << 62
        self._retention = retention
        self._replayed: set[tuple[int, bytes]] = set()
        self._records: list[tuple[int, Record]] = []
        self._ranges: dict[int, RecordRange] = {}

    def __len__(self) -> int:
        return len(self.columns)

    def plan(self, at_ms: int) -> BlockManifest:
        """The plan of what the block holds now."""
        return BlockManifest(ranges=tuple(sorted(self._ranges.values())), at_ms=at_ms)

    def feed(self, record: Record, seen: int, again: int = -1) -> int:
        """Take one record, given the last source position of its partition; returns the new one, kept in `seen` too.

        Records before the offset `again` may be stored already.
        """
        self.seen[record.partition] = self._feed(record, seen, again)
        return self.seen[record.partition]

    def _feed(self, record: Record, seen: int, again: int) -> int:
        known = self._ranges.get(record.partition)
        self._ranges[record.partition] = RecordRange(
            partition=record.partition,
            first=known.first if known else record.offset,
            last=record.offset,
            seen=known.seen if known else seen,
            again=known.again if known else again,
        )
        self.by_id |= record.offset < again
        self.records += 1
        try:
            chunk = decode_grouped(record.value or b"")
            events = decode_chunk(chunk.chunk)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            reason = f"not a chunk of grouped events: {error}"
            value, headers = record.value or b"", _marked(record, WHOLE)
            self.refused.append(
                RejectedRecord(record.partition, record.offset, "undecodable", reason, value, headers)
            )
            return seen
        origin = next((value for name, value in record.headers if name == REPLAYED_HEADER), None)
        if origin is None and chunk.offset <= seen:
            self.repeats += 1
            return seen
        self._add(record, chunk, events, origin)
        return chunk.offset if origin is None else seen

    def _add(
        self, record: Record, chunk: GroupedChunk, events: list[ChunkEvent], origin: bytes | None
    ) -> None:
        self._records.append((len(self), record))
        add, days, groupings = self.columns.add, self._retention.days, chunk.groupings
        for position, group in zip(chunk.kept, chunk.grouping_of, strict=True):
            event = events[position]
            if origin is not None and not self._is_first(event, origin):
                continue
            try:
                add(event, groupings[group], *days(event.project))
            except (BadPayload, Unreadable) as error:
                self.refused.append(_alone(record, chunk, event, groupings[group], "unreadable", str(error)))
            else:
                self.oldest_ms = min(self.oldest_ms, event.received_ms)

    def _is_first(self, event: ChunkEvent, origin: bytes) -> bool:
        """Take note of an event from the dead letters; False where the block has it already."""
        self.by_id = True
        if origin != WHOLE:
            self.put_back.append(PutBack(event, origin.decode(errors="replace")))
        key = event.project, event.id
        known = key in self._replayed
        self._replayed.add(key)
        return not known

    def refusal(self, row: int, project: int, event_id: bytes, reason: str) -> RejectedRecord:
        """What the server refused: the event of one of the rows."""
        _, record = self._records[bisect_right(self._records, row, key=itemgetter(0)) - 1]
        chunk = decode_grouped(record.value or b"")
        events = decode_chunk(chunk.chunk)
        for position, group in zip(chunk.kept, chunk.grouping_of, strict=True):
            event = events[position]
            if event.id == event_id and event.project == project:
                return _alone(record, chunk, event, chunk.groupings[group], "refused", reason)
        raise LookupError(f"row {row} is not of {record.partition}/{record.offset}")


def _alone(
    record: Record, chunk: GroupedChunk, event: ChunkEvent, grouping: Grouping, kind: str, reason: str
) -> RejectedRecord:
    return RejectedRecord(
        partition=record.partition,
        offset=record.offset,
        kind=kind,
        reason=reason,
        value=single(chunk, event, grouping),
        headers=_marked(record, f"{record.partition}/{record.offset}".encode()),
        event=event,
    )


def _marked(record: Record, origin: bytes) -> Headers:
    """The headers with which a letter of a record is to be put back."""
    kept = (header for header in record.headers if header[0] != REPLAYED_HEADER)
    return (*kept, (REPLAYED_HEADER, origin))


def single(chunk: GroupedChunk, event: ChunkEvent, grouping: Grouping) -> bytes:
    """The value of a record that holds one event of a chunk alone."""
    return msgspec.msgpack.encode(
        GroupedChunk(
            partition=chunk.partition,
            offset=chunk.offset,
            kept=[0],
            grouping_of=[0],
            groupings=[grouping],
            chunk=msgspec.msgpack.encode([event]),
        )
    )
