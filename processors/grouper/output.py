"""What follows from decisions about source records: grouped chunks, increments, outcomes, dead letters.

The same decisions give the same output, whenever and wherever: what was recorded is forwarded again as it was.
"""

import struct
from collections.abc import Collection, Mapping
from typing import NamedTuple

import msgspec

from broker.message import Message
from processors.grouper.dedup_log import DedupEntry, DedupRecord
from processors.grouper.fingerprinter import Fingerprinter, Found
from processors.grouper.increments import Increments
from processors.grouper.outcomes import DISCARDED, UNREADABLE, RecordOutcomes, rules_skipped
from processors.positions import LogRecreated, SourceRecord
from processors.stage import DeadEvent
from schemas.chunks import (
    EVENTS_FORMAT,
    FORMAT_HEADER,
    GROUPED_FORMAT,
    SOURCE_HEADER,
    ChunkEvent,
    GroupedChunk,
    Grouping,
    encode_chunk,
    encode_grouped,
)
from schemas.errors import BadPayload
from schemas.increments import SourceIncrements
from schemas.issues import Outcome
from schemas.payload import MissingDictionary


class GroupedEvent(NamedTuple):
    """A new event with its grouping."""

    offset: int
    event: ChunkEvent
    grouping: Grouping


class BatchOutput:
    """All that a take writes for one partition. `records` and `events` count what was read, `new` what was forwarded."""

    def __init__(self, partition: int, *, each: bool = False) -> None:
        self.partition = partition
        self.entries: list[DedupEntry] = []
        self.grouped: list[Message] = []
        self.increments: list[SourceIncrements] = []
        self.outcomes: dict[int, list[Outcome]] = {}
        # Apart from the outcomes: a writer that doesn't know them yet sets aside these records alone.
        self.rules_skipped: list[tuple[int, list[Outcome]]] = []
        self.bad: list[DeadEvent] = []
        self.each: list[GroupedEvent] | None = [] if each else None
        self.records = 0
        self.events = 0
        self.new = 0
        self.duplicates = 0
        self.oldest_received_ms = 0

    def bad_record(self, source: SourceRecord, reason: str) -> None:
        """A record that is no chunk."""
        self.bad.append(DeadEvent(source.offset, source.key, source.value, source.headers, reason, None))

    def record(
        self,
        source: SourceRecord,
        chunk: list[ChunkEvent],
        record: DedupRecord,
        grouper: Fingerprinter,
        forwarded: Mapping[int, int] | None = None,
    ) -> DedupRecord:
        """One chunk with its decisions; what is returned is `record` completed by the fingerprints found.

        `forwarded` are the fingerprints of the events that are known to have been forwarded before, by position; no others were.
        """
        work = _Record(self, source, chunk, grouper, forwarded)
        done = work.run(record)
        self.events += len(chunk)
        self.new += len(work.kept)
        self.duplicates += work.duplicates
        return done


class _Record:
    """The work on one chunk."""

    def __init__(
        self,
        emission: BatchOutput,
        source: SourceRecord,
        chunk: list[ChunkEvent],
        grouper: Fingerprinter,
        forwarded: Mapping[int, int] | None,
    ) -> None:
        self.emission = emission
        self.source = source
        self.chunk = chunk
        self.grouper = grouper
        self.forwarded = forwarded
        self.kept: list[int] = []
        self.grouping_of: list[int] = []
        self.groupings: list[Grouping] = []
        self.places: dict[tuple[int, str], int] = {}
        self.increments = Increments()
        self.duplicates = 0

    def run(self, record: DedupRecord) -> DedupRecord:
        """Emit, and return the record as it is to be remembered."""
        if record.total != len(self.chunk):
            where = f"events/{self.emission.partition}/{self.source.offset}"
            raise LogRecreated(f"{where}: {record.total} events were recorded, {len(self.chunk)} are there")
        outcomes = RecordOutcomes(self.emission.partition, self.source.offset)
        outcomes.accepted(self.chunk)
        positions = record.positions
        recorded = _unpack(record.fingerprints)
        values: list[int] = []
        dead: list[tuple[int, str]] = [(position, UNREADABLE) for position in record.dead]
        group, add, forwarded = self.grouper.group, self.increments.add, self.forwarded
        repeated: list[int] = []
        for place, position in enumerate(positions):
            carried = self.chunk[position]
            try:
                event, found = group(carried)
            except (BadPayload, msgspec.DecodeError) as error:
                dead.append((position, f"bad payload: {error}"))
                continue
            except MissingDictionary:
                # The event is sound: the worker ends with this sentence, and reads it again once the file is there.
                raise
            except Exception as error:  # noqa: BLE001 - one event that grouping can't take must not stop all others
                dead.append((position, f"grouping failed: {type(error).__name__}: {error}"))
                continue
            value = recorded[place] if recorded else found.value
            if forwarded is not None:
                if value and position not in forwarded:
                    # Its id came earlier, in a record that has expired.
                    repeated.append(position)
                    continue
                value = forwarded.get(position, 0)
            values.append(value)
            if value:
                self._keep(position, carried, found, value)
                add(carried, event, found, value)
            else:
                outcomes.dead(carried, DISCARDED)
        for position, reason in dead:
            outcomes.dead(self.chunk[position], UNREADABLE)
            self._dead_letter(self.chunk[position], reason)
        if repeated or len(positions) + len(record.dead) != len(self.chunk):
            self._count_duplicates(outcomes, {*positions, *record.dead}.difference(repeated))
        self._finish(outcomes)
        return (
            record if recorded or record.dead else _completed(record, values, [p for p, _ in dead], repeated)
        )

    def _keep(self, position: int, carried: ChunkEvent, found: Found, value: int) -> None:
        grouping = found.grouping
        place = self.places.get((value, grouping.rule))
        if place is None:
            place = self.places[value, grouping.rule] = len(self.groupings)
            if grouping.fingerprint != value:
                grouping = Grouping(value, grouping.version, grouping.rule, grouping.parts)
            self.groupings.append(grouping)
        self.kept.append(position)
        self.grouping_of.append(place)
        if self.emission.each is not None:
            grouped = GroupedEvent(self.source.offset, carried, self.groupings[place])
            self.emission.each.append(grouped)

    def _dead_letter(self, carried: ChunkEvent, reason: str) -> None:
        value = encode_chunk([carried])
        headers = [(FORMAT_HEADER, EVENTS_FORMAT)]
        self.emission.bad.append(
            DeadEvent(self.source.offset, self.source.key, value, headers, reason, carried.project)
        )

    def _count_duplicates(self, outcomes: RecordOutcomes, first: Collection[int]) -> None:
        """Events at other positions than those that carry an id for the first time."""
        for position, carried in enumerate(self.chunk):
            if position not in first:
                outcomes.duplicate(carried)
                self.duplicates += 1

    def _finish(self, outcomes: RecordOutcomes) -> None:
        emission, offset = self.emission, self.source.offset
        if self.kept:
            grouped = GroupedChunk(
                emission.partition, offset, self.kept, self.grouping_of, self.groupings, self.source.value
            )
            place = source_position(emission.partition, offset)
            headers = [(FORMAT_HEADER, GROUPED_FORMAT), (SOURCE_HEADER, place)]
            emission.grouped.append(Message(None, encode_grouped(grouped), headers))
            increments = SourceIncrements(emission.partition, offset, self.increments.finish())
            emission.increments.append(increments)
        for project, found in outcomes.finish().items():
            emission.outcomes.setdefault(project, []).extend(found)
        if skipped := self.grouper.pop_skipped():
            emission.rules_skipped += rules_skipped(emission.partition, offset, skipped)
        if self.chunk:
            oldest = min(event.received_ms for event in self.chunk)
            emission.oldest_received_ms = min(emission.oldest_received_ms or oldest, oldest)


def source_position(partition: int, offset: int) -> bytes:
    """A position in `events` as the header `source` has it."""
    return b"%d/%d" % (partition, offset)


def _unpack(fingerprints: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(fingerprints) // 8}Q", fingerprints)


def _completed(record: DedupRecord, values: list[int], dead: list[int], repeated: list[int]) -> DedupRecord:
    packed = struct.pack(f"<{len(values)}Q", *values)
    if not dead and not repeated:
        return DedupRecord(record.offset, record.total, record.new, record.keys, packed)
    lost = {*dead, *repeated}
    kept = [(place, position) for place, position in enumerate(record.positions) if position not in lost]
    keys = b"".join(record.keys[place * 16 : place * 16 + 16] for place, _ in kept)
    return DedupRecord(record.offset, record.total, [p for _, p in kept], keys, packed, dead)
