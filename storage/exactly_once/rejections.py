"""Records and events that the writer puts into the dead letters, or gets back from there. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence, Set
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


class LostEvents(Struct, frozen=True):
    """The new events of a record of `events` that is no longer there, by project.

    `source` is its offset, `at_ms` the time of its record of `grouped`.
    """

    source: int
    at_ms: int
    events: dict[int, int]


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


def lost_record(record: "Record", grouped: GroupedRecord, reason: str) -> RejectedRecord:
    """A record whose source is lost."""
    projects = Counter(grouped.projects[group] for group in grouped.grouping_of)
    return RejectedRecord(
        partition=record.partition,
        offset=record.offset,
        kind="sourceLost",
        reason=reason,
        value=record.value or b"",
        headers=dead_letter_headers(record, UNCOUNTED),
        lost=LostEvents(grouped.offset, record.timestamp, dict(projects)),
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
