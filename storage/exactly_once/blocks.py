"""Blocks of rows, made of consecutive records of `grouped`. Pure."""

from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

import msgspec

from schemas.chunks import REPLAYED_HEADER, ChunkEvent, GroupedRecord, decode_grouped
from schemas.errors import SourceLost, Unreadable
from storage.exactly_once.block_plan import BlockPlan, RecordRange
from storage.exactly_once.block_tokens import ServerMark
from storage.exactly_once.rejections import (
    UNCOUNTED,
    BlockRecord,
    PutBack,
    RejectedRecord,
    dead_letter_headers,
    lost_record,
    rejected_event,
)
from storage.tables.event_columns import EventColumns

if TYPE_CHECKING:
    from broker.types import Record


class Block:
    """Rows of consecutive records of some partitions; `repeats` counts the records that were dropped.

    `source_offsets` has the last source position of each partition in the block, `oldest_ms` the earliest
    receipt of an event. `by_id` says that some rows may be stored already, so it is completed by ids: they
    were put back, or read again. `passed_over` counts the records that were read again and whose events have
    expired.
    """

    def __init__(self) -> None:
        self.columns = EventColumns()
        self.rejected: list[RejectedRecord] = []
        self.put_back: list[PutBack] = []
        self.by_id = False
        self.passed_over = 0
        self.source_offsets: dict[int, int] = {}
        self.oldest_ms = 1 << 62
        self._replayed: set[tuple[int, bytes]] = set()
        self.records: list[BlockRecord] = []
        self._ranges: dict[int, RecordRange] = {}
        self._since: dict[int, int] = {}
        """The time of the first record of each partition (Unix ms)."""

    def __len__(self) -> int:
        return len(self.columns)

    def plan(self, mark: ServerMark) -> BlockPlan:
        """The plan of the block as it is now, given the server's mark from before."""
        ranges = tuple(sorted(self._ranges.values()))
        return BlockPlan(ranges, mark, self._since[ranges[0].partition])

    def feed(self, record: "Record", source: bytes | None, source_offset: int, verify_until: int = -1) -> int:
        """Add a record, given the last source position of its partition; returns the new position.

        `source` is the value of its source, None where `events` no longer has it. The new position is also in
        `source_offsets`. Rows of source positions before `verify_until` may be stored already.
        """
        source_offset = self._feed(record, source, source_offset, verify_until)
        self.source_offsets[record.partition] = source_offset
        return source_offset

    def _feed(self, record: "Record", source: bytes | None, source_offset: int, verify_until: int) -> int:
        self._since.setdefault(record.partition, record.timestamp)
        known = self._ranges.get(record.partition)
        self._ranges[record.partition] = RecordRange(
            partition=record.partition,
            first=known.first if known else record.offset,
            last=record.offset,
            source_offset=known.source_offset if known else source_offset,
            verify_until=known.verify_until if known else verify_until,
        )
        try:
            grouped = decode_grouped(record.value or b"")
            origin = next((value for name, value in record.headers if name == REPLAYED_HEADER), None)
            if origin is None and grouped.offset <= source_offset:
                return source_offset
            events = grouped.events(source)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            reason = f"not a record of grouped events: {error}"
            value, headers = record.value or b"", dead_letter_headers(record, UNCOUNTED)
            self.rejected.append(
                RejectedRecord(record.partition, record.offset, "undecodable", reason, value, headers)
            )
            return source_offset
        except SourceLost as error:
            if origin is None and grouped.offset < verify_until:
                self.passed_over += 1
            else:
                self.rejected.append(lost_record(record, grouped, str(error)))
        else:
            self.by_id |= grouped.offset < verify_until
            self._add(BlockRecord(len(self), record, grouped, source), events, origin)
        return grouped.offset if origin is None else source_offset

    def _add(self, part: BlockRecord, events: Sequence[ChunkEvent], origin: bytes | None) -> None:
        self.records.append(part)
        add_row = self.columns.add_row
        for event, grouping in part.grouped.new(events):
            if origin is not None and not self._is_first(event, origin):
                continue
            try:
                add_row(event, grouping, *_stored_days(part.grouped, event))
            except Unreadable as error:
                self.rejected.append(
                    rejected_event(part.record, part.grouped, event, grouping, "unreadable", str(error))
                )
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
        """The event of a row that the server refused.

        Of an event that was put back, the last copy is refused: the others were refused before.
        """
        at = bisect_right(self.records, row, key=itemgetter(0))
        came_back = any((copy.event.project, copy.event.id) == (project, event_id) for copy in self.put_back)
        for part in reversed(self.records if came_back else self.records[at - 1 : at]):
            for event, grouping in part.new():
                if event.id == event_id and event.project == project:
                    return rejected_event(part.record, part.grouped, event, grouping, "refused", reason)
        raise LookupError(f"row {row} is of no record")


def _stored_days(grouped: GroupedRecord, event: ChunkEvent) -> tuple[int, int]:
    days = grouped.retention.get(event.project)
    if days is None:
        raise Unreadable("the record has no retention of the event's project")
    return days
