"""Records and events that the writer puts into the dead letters, or gets back from there. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from schemas.chunks import (
    REPLAYED_HEADER,
    ChunkEvent,
    GroupedRecord,
    Grouping,
    encode_chunk,
    encode_grouped,
)

if TYPE_CHECKING:
    from broker.types import Record

UNCOUNTED: Final = b"whole"
"""No event of the record was counted as a dead letter: it was undecodable, or is sent again."""
LOST: Final = "sourceLost"
"""The kind of a record of which `events` no longer has the events."""
Headers = tuple[tuple[str, bytes], ...]
EventKey = tuple[int, bytes]
"""Project and id of an event."""


class BlockRecord(NamedTuple):
    """A readable record of a block, and the value of its source; `row` is the first one of it in the block."""

    row: int
    record: "Record"
    grouped: GroupedRecord
    source: bytes | None

    def new(self) -> Iterator[tuple[ChunkEvent, Grouping]]:
        """Its new events, inflated again: a block would hold ten times as much memory with them."""
        return self.grouped.new(self.grouped.events(self.source))


class RejectedRecord(Struct, frozen=True):
    """A record that can't be written, or one event of it, which `value` then holds alone.

    `kind` is a stable word. `lost` is set where the events of a record are lost.
    """

    partition: int
    offset: int
    kind: str
    reason: str
    value: bytes
    headers: Headers
    event: ChunkEvent | None = None
    lost: "LostEvents | None" = None


class Origin(NamedTuple):
    """Where, and why, an event was dead-lettered: the header that it is put back with.

    `partition/offset/kind`, and for the events of a lost source also the time of its record (Unix ms).
    """

    partition: str
    offset: int
    kind: str
    at_ms: int

    @staticmethod
    def of(text: str) -> "Origin":
        """0 stands for a number that can't be read."""
        partition, offset, kind, at_ms, *_ = [*text.split("/"), "", "", ""]
        numbers = (int(number) if number.isdecimal() else 0 for number in (offset, at_ms))
        return Origin(partition, next(numbers), kind, next(numbers))


class LostEvents(Struct, frozen=True):
    """The number of events by project of a record whose source is lost, and its `Origin` as text."""

    origin: str
    events: Mapping[int, int]


class PutBack(Struct, frozen=True):
    """An event put back from the dead letters, with its `Origin` as text."""

    event: ChunkEvent
    origin: str


def lost_record(record: "Record", grouped: GroupedRecord, came_from: str, reason: str) -> RejectedRecord:
    """A record whose source is lost. `came_from` is its origin if it was lost before, and then counts as before."""
    origin = came_from
    if Origin.of(origin).kind != LOST:
        origin = f"{record.partition}/{record.offset}/{LOST}/{record.timestamp}"
    return RejectedRecord(
        partition=record.partition,
        offset=record.offset,
        kind=LOST,
        reason=reason,
        value=record.value or b"",
        headers=dead_letter_headers(record, origin.encode()),
        lost=LostEvents(origin, Counter(grouped.projects[group] for group in grouped.grouping_of)),
    )


def rejected_event(
    record: "Record", grouped: GroupedRecord, event: ChunkEvent, grouping: Grouping, kind: str, reason: str
) -> RejectedRecord:
    """One event of a record, rejected alone."""
    return RejectedRecord(
        partition=record.partition,
        offset=record.offset,
        kind=kind,
        reason=reason,
        value=_excerpt(grouped, [(event, grouping)]),
        headers=dead_letter_headers(record, f"{record.partition}/{record.offset}/{kind}".encode()),
        event=event,
    )


def dead_letter_headers(record: "Record", origin: bytes) -> Headers:
    """The headers of a dead letter, with which it is put back."""
    original = (header for header in record.headers if header[0] != REPLAYED_HEADER)
    return (*original, (REPLAYED_HEADER, origin))


def _excerpt(grouped: GroupedRecord, events: Sequence[tuple[ChunkEvent, Grouping]]) -> bytes:
    """The value of a record that holds only these of its events."""
    return encode_grouped(
        replace(
            grouped,
            kept=list(range(len(events))),
            grouping_of=list(range(len(events))),
            groupings=[grouping for _, grouping in events],
            projects=[event.project for event, _ in events],
            chunk=encode_chunk([event for event, _ in events]),
        )
    )


def sent_again(part: BlockRecord, wanted: Set[EventKey]) -> tuple[bytes, Headers, set[EventKey]]:
    """Value and headers of a record with only the wanted events of a record, and these events.

    The writer completes it by ids, and changes no outcome for it.
    """
    chosen = [(event, grouping) for event, grouping in part.new() if (event.project, event.id) in wanted]
    keys = {(event.project, event.id) for event, _ in chosen}
    return _excerpt(part.grouped, chosen), dead_letter_headers(part.record, UNCOUNTED), keys
