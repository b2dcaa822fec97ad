"""A block of rows, and the plan that makes it repeatable: which records it holds, as text that fits into an offset commit. Pure.

Before a block is inserted, each of its partitions is committed at its first record with the plan in the metadata; after it, past its
last record. The next owner of any of its partitions finds the plan and replays exactly that block under the same token.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence, Set
from operator import itemgetter
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from schemas.chunks import (
    REPLAYED_HEADER,
    ChunkEvent,
    GroupedChunk,
    Grouping,
    decode_chunk,
    decode_grouped,
)
from schemas.errors import BadPayload, Unreadable
from storage.writer.event_rows import EventColumns
from storage.writer.tokens import ServerMark, decode_mark, encode_mark

MAX_RANGES: Final = 64
"""Partitions in one block: the broker allows 4,096 bytes of metadata, and a range takes up to 60."""
_PLAN: Final = "plan2"
_DIRECT: Final = "direct2"
_NO_MARK: Final = "-"
_DONE: Final = "done1"


class NoBlock(Struct, frozen=True):
    """No block in progress; `source_offset` and `by_id_until` as in `RecordRange`."""

    source_offset: int = -1
    by_id_until: int = -1


class RecordRange(Struct, frozen=True, order=True):
    """Records `first` to `last` of a partition.

    `source_offset` is the last source position before them, -1 for none. Records before `by_id_until` may be stored already (-1: none).
    """

    partition: int
    first: int
    last: int
    source_offset: int
    by_id_until: int = -1


class BlockManifest(Struct, frozen=True):
    """A block in progress: its ranges in the order of their partitions, and the server's mark before it was planned.

    `direct` says that tables may have rows of it without its token, so it must be completed, not inserted; so must a block without
    a mark.
    """

    ranges: tuple[RecordRange, ...]
    mark: ServerMark | None
    direct: bool = False

    def token(self, topic: str) -> str:
        """The insert's deduplication token: equal for equal ranges, whoever inserts them, at any time."""
        spans = ",".join(f"{r.partition}:{r.first}-{r.last}" for r in self.ranges)
        return f"{topic}/{spans}"

    def ends(self, source_offsets: Mapping[int, int]) -> dict[int, tuple[int, NoBlock]]:
        """The commits after the insert: next offset and state of each partition, given the last source positions."""
        return {
            r.partition: (
                r.last + 1,
                NoBlock(source_offsets[r.partition], r.by_id_until if r.by_id_until > r.last + 1 else -1),
            )
            for r in self.ranges
        }


def encode_manifest(state: BlockManifest | NoBlock) -> str:
    """The metadata of an offset commit."""
    if isinstance(state, NoBlock):
        return f"{_DONE} {state.source_offset}{_optional(' ', state.by_id_until)}"
    ranges = ",".join(
        f"{r.partition}:{r.first}:{r.last - r.first}:{r.source_offset}{_optional(':', r.by_id_until)}"
        for r in state.ranges
    )
    kind = _PLAN if state.mark is not None and not state.direct else _DIRECT
    return f"{kind} {encode_mark(state.mark) if state.mark is not None else _NO_MARK} {ranges}"


def decode_manifest(text: str) -> BlockManifest | NoBlock:
    """The state that `encode_manifest` wrote. Text of another origin (none, or an offset set by hand) gives an empty `NoBlock`."""
    kind, _, fields = text.partition(" ")
    try:
        if kind in {_PLAN, _DIRECT}:
            text, _, ranges = fields.partition(" ")
            mark = None if text == _NO_MARK else decode_mark(text)
            spans = tuple(_range(part) for part in ranges.split(","))
            return BlockManifest(ranges=spans, mark=mark, direct=mark is None or kind == _DIRECT)
        if kind == _DONE:
            return NoBlock(*map(int, fields.split(" ", 1)))
    except ValueError:
        pass
    return NoBlock()


def _optional(separator: str, offset: int) -> str:
    return "" if offset < 0 else f"{separator}{offset}"


def _range(text: str) -> RecordRange:
    partition, first, more, source_offset, *by_id_until = (int(number) for number in text.split(":"))
    return RecordRange(partition, first, first + more, source_offset, *by_id_until)


UNCOUNTED: Final = b"whole"
"""No event of the record was counted as a dead letter: it was undecodable, or is sent again."""
Headers = tuple[tuple[str, bytes], ...]
EventKey = tuple[int, bytes]
"""Project and id of an event."""


class Record(Protocol):
    """The fields of a Kafka record that a block reads."""

    @property
    def partition(self) -> int: ...  # noqa: D102
    @property
    def offset(self) -> int: ...  # noqa: D102
    @property
    def value(self) -> bytes | None: ...  # noqa: D102
    @property
    def headers(self) -> Headers: ...  # noqa: D102


class RejectedRecord(Struct, frozen=True):
    """A record that can't be written, or one event of it, which `value` then holds alone. `kind` is a stable word."""

    partition: int
    offset: int
    kind: str
    reason: str
    value: bytes
    headers: Headers
    event: ChunkEvent | None = None


class PutBack(Struct, frozen=True):
    """An event put back from the dead letters; `origin` is where it was dead-lettered, and why: `partition/offset/kind`."""

    event: ChunkEvent
    origin: str

    @property
    def position(self) -> tuple[str, int, str]:
        """Partition, offset (0 if unreadable) and kind."""
        partition, offset, kind, *_ = [*self.origin.split("/"), "", ""]
        return partition, int(offset) if offset.isdecimal() else 0, kind


class Block:
    """Rows of consecutive records of some partitions; `repeats` counts the records that were dropped.

    `source_offsets` has the last source position of each partition in the block, `oldest_ms` the earliest receipt of an event.
    `by_id` says that some rows may be stored already, so it is completed by ids: they were put back, or read again.
    """

    def __init__(self) -> None:
        self.columns = EventColumns()
        self.rejected: list[RejectedRecord] = []
        self.put_back: list[PutBack] = []
        self.by_id = False
        self.source_offsets: dict[int, int] = {}
        self.records = 0
        self.repeats = 0
        self.oldest_ms = 1 << 62
        self._replayed: set[tuple[int, bytes]] = set()
        self._records: list[tuple[int, Record]] = []
        self._ranges: dict[int, RecordRange] = {}

    def __len__(self) -> int:
        return len(self.columns)

    def plan(self, mark: ServerMark) -> BlockManifest:
        """The plan of the block as it is now, given the server's mark from before."""
        return BlockManifest(ranges=tuple(sorted(self._ranges.values())), mark=mark)

    def feed(self, record: Record, source_offset: int, by_id_until: int = -1) -> int:
        """Add a record, given the last source position of its partition; returns the new one, also in `source_offsets`.

        Records before the offset `by_id_until` may be stored already.
        """
        source_offset = self._feed(record, source_offset, by_id_until)
        self.source_offsets[record.partition] = source_offset
        return source_offset

    def _feed(self, record: Record, source_offset: int, by_id_until: int) -> int:
        known = self._ranges.get(record.partition)
        self._ranges[record.partition] = RecordRange(
            partition=record.partition,
            first=known.first if known else record.offset,
            last=record.offset,
            source_offset=known.source_offset if known else source_offset,
            by_id_until=known.by_id_until if known else by_id_until,
        )
        self.by_id |= record.offset < by_id_until
        self.records += 1
        try:
            chunk = decode_grouped(record.value or b"")
            events = decode_chunk(chunk.chunk)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            reason = f"not a chunk of grouped events: {error}"
            value, headers = record.value or b"", _marked(record, UNCOUNTED)
            self.rejected.append(
                RejectedRecord(record.partition, record.offset, "undecodable", reason, value, headers)
            )
            return source_offset
        origin = next((value for name, value in record.headers if name == REPLAYED_HEADER), None)
        if origin is None and chunk.offset <= source_offset:
            self.repeats += 1
            return source_offset
        self._add(record, chunk, events, origin)
        return chunk.offset if origin is None else source_offset

    def _add(
        self, record: Record, chunk: GroupedChunk, events: list[ChunkEvent], origin: bytes | None
    ) -> None:
        self._records.append((len(self), record))
        add, groupings = self.columns.add, chunk.groupings
        for position, group in zip(chunk.kept, chunk.grouping_of, strict=True):
            event = events[position]
            if origin is not None and not self._is_first(event, origin):
                continue
            try:
                add(event, groupings[group], *_stored_days(chunk, event))
            except (BadPayload, Unreadable) as error:
                self.rejected.append(_alone(record, chunk, event, groupings[group], "unreadable", str(error)))
            else:
                self.oldest_ms = min(self.oldest_ms, event.received_ms)

    def _is_first(self, event: ChunkEvent, origin: bytes) -> bool:
        """Note an event put back from the dead letters; False if the block has it already."""
        self.by_id = True
        if origin != UNCOUNTED:
            self.put_back.append(PutBack(event, origin.decode(errors="replace")))
        key = event.project, event.id
        known = key in self._replayed
        self._replayed.add(key)
        return not known

    def rejection(self, row: int, project: int, event_id: bytes, reason: str) -> RejectedRecord:
        """The event of a row that the server refused."""
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
        value=excerpt(chunk, [(event, grouping)]),
        headers=_marked(record, f"{record.partition}/{record.offset}/{kind}".encode()),
        event=event,
    )


def _stored_days(chunk: GroupedChunk, event: ChunkEvent) -> tuple[int, int]:
    days = chunk.retention.get(event.project)
    if days is None:
        raise Unreadable("the record has no retention of the event's project")
    return days


def _marked(record: Record, origin: bytes) -> Headers:
    """The headers of a dead letter, with which it is put back."""
    original = (header for header in record.headers if header[0] != REPLAYED_HEADER)
    return (*original, (REPLAYED_HEADER, origin))


def excerpt(chunk: GroupedChunk, events: Sequence[tuple[ChunkEvent, Grouping]]) -> bytes:
    """The value of a record that holds only these events of a chunk."""
    return msgspec.msgpack.encode(
        GroupedChunk(
            partition=chunk.partition,
            offset=chunk.offset,
            kept=list(range(len(events))),
            grouping_of=list(range(len(events))),
            groupings=[grouping for _, grouping in events],
            chunk=msgspec.msgpack.encode([event for event, _ in events]),
            retention=chunk.retention,
        )
    )


def sent_again(record: Record, wanted: Set[EventKey]) -> tuple[bytes, Headers, set[EventKey]]:
    """Value and headers of a record that holds only the wanted events of a readable record, and which these are.

    The writer completes it by ids, and changes no outcome for it.
    """
    chunk = decode_grouped(record.value or b"")
    events = decode_chunk(chunk.chunk)
    chosen = [
        (events[position], chunk.groupings[group])
        for position, group in zip(chunk.kept, chunk.grouping_of, strict=True)
        if (events[position].project, events[position].id) in wanted
    ]
    keys = {(event.project, event.id) for event, _ in chosen}
    return excerpt(chunk, chosen), _marked(record, UNCOUNTED), keys
