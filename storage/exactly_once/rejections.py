"""Records and events that the writer puts into the dead letters, or gets back from there. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import cycle
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
from schemas.times import MINUTE_MS

if TYPE_CHECKING:
    from broker.types import Record

UNCOUNTED: Final = b"whole"
"""No event of the record was counted as a dead letter: it was undecodable, or is sent again."""
LOST: Final = "sourceLost"
"""The kind of records whose events are gone from `events`."""
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
    """Where and why an event was dead-lettered: the header `replayed` of the record that puts it back.

    Partition and offset are those of its record of `grouped`; of a lost source they are those of the source.
    """

    partition: str
    offset: int
    kind: str

    @staticmethod
    def of(text: str) -> "Origin":
        """Read `partition/offset/kind`; what can't be read is empty or 0."""
        partition, offset, kind, *_ = [*text.split("/"), "", ""]
        return Origin(partition, int(offset) if offset.isdecimal() else 0, kind)


class LostEvents(Struct, frozen=True):
    """The events of a lost source: their number by project and minute of receipt, and their origin."""

    origin: str
    events: Mapping[tuple[int, int], int]


class PutBack(Struct, frozen=True):
    """An event put back from the dead letters, with its origin."""

    event: ChunkEvent
    origin: str


def lost_origin(grouped: GroupedRecord) -> str:
    """The origin of the events of a lost source. It is the same for each record about this source."""
    return f"{grouped.partition}/{grouped.offset}/{LOST}/{grouped.crc:x}"


def lost_record(record: "Record", grouped: GroupedRecord, reason: str) -> RejectedRecord:
    """A record whose source is lost."""
    origin, minutes = lost_origin(grouped), cycle(grouped.minutes)
    projects = (grouped.projects[group] for group in grouped.grouping_of)
    return RejectedRecord(
        partition=record.partition,
        offset=record.offset,
        kind=LOST,
        reason=reason,
        value=record.value or b"",
        headers=dead_letter_headers(record, origin.encode()),
        lost=LostEvents(origin, Counter(zip(projects, minutes, strict=False))),
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
            minutes=[event.received_ms // MINUTE_MS for event, _ in events],
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
