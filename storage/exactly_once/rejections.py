"""Records and events that the writer puts into the dead letters, or gets back from there. Pure."""

from collections.abc import Sequence, Set
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from schemas.chunks import (
    REPLAYED_HEADER,
    ChunkEvent,
    GroupedChunk,
    Grouping,
    decode_chunk,
    decode_grouped,
    encode_chunk,
)

if TYPE_CHECKING:
    from broker.types import Record

UNCOUNTED: Final = b"whole"
"""No event of the record was counted as a dead letter: it was undecodable, or is sent again."""
Headers = tuple[tuple[str, bytes], ...]
EventKey = tuple[int, bytes]
"""Project and id of an event."""


class RejectedRecord(Struct, frozen=True):
    """A record that can't be written, or one event of it, which `value` then holds alone.

    `kind` is a stable word.
    """

    partition: int
    offset: int
    kind: str
    reason: str
    value: bytes
    headers: Headers
    event: ChunkEvent | None = None


class PutBack(Struct, frozen=True):
    """An event put back from the dead letters.

    `origin` is where it was dead-lettered, and why: `partition/offset/kind`.
    """

    event: ChunkEvent
    origin: str

    @property
    def position(self) -> tuple[str, int, str]:
        """Partition, offset (0 if unreadable) and kind."""
        partition, offset, kind, *_ = [*self.origin.split("/"), "", ""]
        return partition, int(offset) if offset.isdecimal() else 0, kind


def rejected_event(
    record: "Record", chunk: GroupedChunk, event: ChunkEvent, grouping: Grouping, kind: str, reason: str
) -> RejectedRecord:
    """One event of a record, rejected alone."""
    return RejectedRecord(
        partition=record.partition,
        offset=record.offset,
        kind=kind,
        reason=reason,
        value=_excerpt(chunk, [(event, grouping)]),
        headers=dead_letter_headers(record, f"{record.partition}/{record.offset}/{kind}".encode()),
        event=event,
    )


def dead_letter_headers(record: "Record", origin: bytes) -> Headers:
    """The headers of a dead letter, with which it is put back."""
    original = (header for header in record.headers if header[0] != REPLAYED_HEADER)
    return (*original, (REPLAYED_HEADER, origin))


def _excerpt(chunk: GroupedChunk, events: Sequence[tuple[ChunkEvent, Grouping]]) -> bytes:
    """The value of a record that holds only these events of a chunk."""
    return msgspec.msgpack.encode(
        GroupedChunk(
            partition=chunk.partition,
            offset=chunk.offset,
            kept=list(range(len(events))),
            grouping_of=list(range(len(events))),
            groupings=[grouping for _, grouping in events],
            chunk=encode_chunk([event for event, _ in events]),
            retention=chunk.retention,
        )
    )


def sent_again(record: "Record", wanted: Set[EventKey]) -> tuple[bytes, Headers, set[EventKey]]:
    """Value and headers of a record with only the wanted events of a readable record, and these events.

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
    return _excerpt(chunk, chosen), dead_letter_headers(record, UNCOUNTED), keys
