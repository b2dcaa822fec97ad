"""The decisions about one batch of a partition of `events`, and the outputs that follow from them.

Pure: no I/O, no clock. The same records and decisions give the same outputs, on any worker and at any time; a
replay depends on it.
"""

import struct
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple
from zlib import crc32

import msgspec
from msgspec.structs import replace

from broker.dead_events import DeadEvent
from broker.message import Message
from grouping.fingerprint.key import LEAST
from processors.grouper.dedup_log import DROP_REASONS, DedupEntry, DedupRecord
from processors.grouper.dedupe import Decision, Dedupe, Incoming, OldIds
from processors.grouper.fingerprinter import EventGrouping, Fingerprinter
from processors.grouper.id_index import id_keys, split
from processors.grouper.record_counts import Increments, RecordOutcomes, rules_skipped
from processors.grouper.replay_start import ReplayBoundary
from processors.grouper.rule_budget import RuleBudget
from processors.positions import LogRecreated, SourceRecord
from schemas.chunks import (
    EVENTS_FORMAT,
    FORMAT_HEADER,
    GROUPED_FORMAT,
    SOURCE_HEADER,
    ChunkEvent,
    GroupedRecord,
    Grouping,
    decode_chunk,
    encode_chunk,
    encode_grouped,
)
from schemas.increments import SourceIncrements
from schemas.issues import Outcome
from schemas.times import MINUTE_MS

ID_BYTES: Final = 16
MAX_PROJECT: Final = 1 << 32
NO_CHUNK: Final = "not a chunk when it was read first"
UNREADABLE: Final = "unreadable"


class BadRecord(Exception):
    """The record is not a chunk of events; the text says why."""


class PartitionState:
    """The state of one partition of `events`.

    It has the next offset, the ids seen, the recorded decisions still to be replayed, and the replay
    boundary.
    """

    def __init__(
        self,
        partition: int,
        dedupe: Dedupe,
        next_offset: int,
        decided: dict[int, DedupRecord],
        boundary: ReplayBoundary = ReplayBoundary(),  # noqa: B008 - it never changes
    ) -> None:
        self.partition = partition
        self.dedupe = dedupe
        self.next_offset = next_offset
        self.decided = decided
        self.boundary = boundary


class DecodedBatch(NamedTuple):
    """Consecutive records from a partition's next offset on, their chunks, and the events not yet decided."""

    sources: Sequence[SourceRecord]
    chunks: Sequence[list[ChunkEvent] | BadRecord]
    undecided: Sequence[Incoming]


class GroupedEvent(NamedTuple):
    """A new event with its grouping."""

    offset: int
    event: ChunkEvent
    grouping: Grouping


class BatchOutput:
    """The outputs of a batch for one partition.

    `records` and `events` count the input, `new` the published events. `grouped_events` is None unless each
    event is also published as a separate record. Skipped rules are not among the outcomes: they end no event.
    """

    def __init__(self, partition: int, *, grouped_events: bool = False) -> None:
        self.partition = partition
        self.entries: list[DedupEntry] = []
        self.grouped: list[Message] = []
        self.increments: list[SourceIncrements] = []
        self.outcomes: dict[int, list[Outcome]] = {}
        self.rules_skipped: list[tuple[int, list[Outcome]]] = []
        self.dead: list[DeadEvent] = []
        self.grouped_events: list[GroupedEvent] | None = [] if grouped_events else None
        self.records = 0
        self.events = 0
        self.new = 0
        self.duplicates = 0
        self.oldest_received_ms = 0


def read_batch(state: PartitionState, sources: Sequence[SourceRecord]) -> DecodedBatch:
    """Records from the next offset on as a batch; one that can't be decoded is part of it, with the reason."""
    chunks: list[list[ChunkEvent] | BadRecord] = []
    for source in sources:
        try:
            chunks.append(read_chunk(source))
        except BadRecord as error:
            chunks.append(error)
    return DecodedBatch(sources, chunks, _undecided(state, sources, chunks))


def old_ids(state: PartitionState, batch: DecodedBatch) -> OldIds:
    """The ids of a batch whose events may be stored although they are forgotten."""
    _, after = _split(state, batch.undecided)
    return state.dedupe.old_ids(after)


def decide(
    state: PartitionState,
    batch: DecodedBatch,
    fingerprinter: Fingerprinter,
    output: BatchOutput,
    stored: Collection[bytes] = (),
) -> Iterator[None]:
    """Decide about a batch and add the results to `output`. Raises LogRecreated.

    The keys `stored` of its old ids are duplicates. Yields before each event, some of which take long. A
    batch that was begun must be ended, or its partition be restored.
    """
    sources, chunks, undecided = batch
    # Outputs of records before the replay boundary were published; they are dropped.
    dropped, boundary = BatchOutput(state.partition), state.boundary
    before, after = _split(state, undecided)
    # This changes the index already, for all records: hence a batch that was begun must be ended.
    decisions = [*state.dedupe.decide(before), *state.dedupe.decide(after, stored)]
    fresh: list[tuple[Decision, DedupRecord]] = []
    for source, chunk in zip(sources, chunks, strict=True):
        recorded = state.decided.pop(source.offset, None)
        # Only records without a recorded decision have one in `decisions`, and `_pass_on_dead` replaces later ones.
        decision = decisions[len(fresh)] if recorded is None else None
        target = output if source.offset >= boundary.since else dropped
        if isinstance(chunk, BadRecord):
            target.dead.append(_dead_record(source, str(chunk)))
            record = DedupRecord(source.offset, 0, [], b"")
        elif recorded is not None and not recorded.total and chunk:
            # It was recorded as no chunk and remains so, though this version can read it: it is retried from
            # the dead letters.
            target.dead.append(_dead_record(source, NO_CHUNK))
            record = DedupRecord(source.offset, 0, [], b"")
        else:
            # A recorded decision has the fingerprints. A lost one takes them from `grouped`, if it was published.
            published = None if recorded else _published_fingerprints(state, source)
            later = {} if recorded else state.decided
            work = _ChunkWork(target, source, chunk, fingerprinter, published, later)
            record = yield from work.run(recorded or _new_record(source, chunk, decision))
        if decision is not None:
            fresh.append((decision, record))
            if record.dead:
                _pass_on_dead(state, decision, record, undecided, decisions, len(fresh))
    # Entries carry the boundary until it is passed: the entries before them are lost.
    entry_boundary = (boundary.since, boundary.last) if state.next_offset <= boundary.last else None
    state.next_offset += len(sources)
    # The batch may begin with replayed records: if it crashes, they are unpublished too.
    output.entries = _entries(fresh, sources[0].offset if sources else 0, entry_boundary)


def _split(state: PartitionState, records: Sequence[Incoming]) -> tuple[list[Incoming], list[Incoming]]:
    """Records up to the replay boundary, and those after it.

    The store says nothing about the former, for it has their own events; the boundary says which were
    published.
    """
    since = max(state.boundary.since, state.boundary.last + 1)
    before = [record for record in records if record.offset < since]
    return before, list(records[len(before) :])


def read_chunk(source: SourceRecord) -> list[ChunkEvent]:
    """The events of a record. Raises BadRecord."""
    record_format = dict(source.headers).get(FORMAT_HEADER)
    if record_format != EVENTS_FORMAT:
        raise BadRecord(f"unknown format {record_format!r}" if record_format else "no format header")
    try:
        chunk = decode_chunk(source.value)
    except msgspec.DecodeError as error:
        raise BadRecord(f"not a chunk: {error}") from None
    for event in chunk:
        if len(event.id) != ID_BYTES or not 0 <= event.project < MAX_PROJECT:
            raise BadRecord("not a chunk: an event with a bad id or project")
    return chunk


def _undecided(
    state: PartitionState, sources: Sequence[SourceRecord], chunks: Sequence[list[ChunkEvent] | BadRecord]
) -> list[Incoming]:
    return [
        Incoming(source.offset, source.timestamp_ms, (), ())
        if isinstance(chunk, BadRecord)
        else Incoming(source.offset, source.timestamp_ms, [e.project for e in chunk], [e.id for e in chunk])
        for source, chunk in zip(sources, chunks, strict=True)
        if source.offset not in state.decided
    ]


def _dead_record(source: SourceRecord, reason: str) -> DeadEvent:
    return DeadEvent(source.offset, source.key, source.value, source.headers, reason, None)


def _published_fingerprints(state: PartitionState, source: SourceRecord) -> Mapping[int, int] | None:
    """The fingerprints that a record within the replay boundary was published with, None outside of it.

    Raises LogRecreated.
    """
    boundary = state.boundary
    if not boundary.since <= source.offset <= boundary.last:
        return None
    published = boundary.published.get(source.offset)
    if published is not None and published.crc != crc32(source.value):
        raise LogRecreated(f"events/{state.partition}/{source.offset} is not the record that grouped has")
    return {} if published is None else published.fingerprints


def _new_record(source: SourceRecord, chunk: list[ChunkEvent], decision: Decision | None) -> DedupRecord:
    assert decision is not None
    new = None if len(decision.new) == len(chunk) else decision.new
    return DedupRecord(source.offset, len(chunk), new, decision.keys, ahead=tuple(decision.ahead))


def _pass_on_dead(
    state: PartitionState,
    decision: Decision,
    record: DedupRecord,
    undecided: Sequence[Incoming],
    decisions: list[Decision],
    begin: int,
) -> None:
    """Forget the ids of a record's events that could not be processed.

    Such an event may be retried, or come again in this batch. From `begin` on, the decision about its next
    copy is corrected.
    """
    own, dead = undecided[begin - 1], set(record.dead)
    for position, key in zip(decision.new, split(decision.keys), strict=True):
        if position not in dead:
            continue
        state.dedupe.forget(key)
        event = own.projects[position], own.ids[position]
        for number in range(begin, len(decisions)):
            later = list(zip(undecided[number].projects, undecided[number].ids, strict=True))
            if event in later:
                ahead = sum(days for days, keys in decision.ahead if key in split(keys))
                decisions[number] = state.dedupe.added(decisions[number], later.index(event), key, ahead)
                break


def _entries(
    fresh: list[tuple[Decision, DedupRecord]], batch_start: int, boundary: tuple[int, int] | None
) -> list[DedupEntry]:
    """The records as entries, each of one day of the log."""
    entries: list[DedupEntry] = []
    day = -1
    for decision, record in fresh:
        if decision.clock.day != day:
            day = decision.clock.day
            entries.append(
                DedupEntry(decision.watermark_ms, batch_start, [], boundary=boundary, clock=decision.clock)
            )
        entries[-1].records.append(record)
    return entries


class _ChunkWork:
    """The work on one chunk: fingerprint its new events and add the outputs.

    `published` are the fingerprints of the events that were published before, by position; no others were.
    `later` are recorded decisions about later records, whose ids are known already.
    """

    def __init__(
        self,
        output: BatchOutput,
        source: SourceRecord,
        chunk: list[ChunkEvent],
        fingerprinter: Fingerprinter,
        published: Mapping[int, int] | None,
        later: Mapping[int, DedupRecord],
    ) -> None:
        self.output = output
        self.source = source
        self.chunk = chunk
        self.fingerprinter = fingerprinter
        self.published = published
        self.later = later
        self.kept: list[int] = []
        self.grouping_of: list[int] = []
        self.groupings: list[Grouping] = []
        self.projects: list[int] = []
        self.indexes: dict[tuple[int, int, str], int] = {}
        self.rule_budget = RuleBudget()
        # A budget apart: owners never decide whether a rule of grouping is skipped.
        self.owner_budget = RuleBudget()
        self.increments = Increments(partial(fingerprinter.owner, budget=self.owner_budget))

    def run(self, record: DedupRecord) -> Generator[None, None, DedupRecord]:
        """Add the outputs; returns the record to be recorded, completed with the fingerprints.

        Yields before each event.
        """
        output, chunk = self.output, self.chunk
        if record.total != len(chunk):
            where = f"events/{output.partition}/{self.source.offset}"
            raise LogRecreated(f"{where}: {record.total} events were recorded, it has {len(chunk)}")
        outcomes = RecordOutcomes(output.partition, self.source.offset)
        outcomes.accepted(chunk)
        positions = record.positions
        recorded = struct.unpack(f"<{len(record.fingerprints) // 8}Q", record.fingerprints)
        fingerprints: list[int] = []
        dead: list[tuple[int, str]] = [(position, UNREADABLE) for position in record.dead]
        group, count, published = self.fingerprinter.group, self.increments.count_event, self.published
        repeated: list[int] = []
        for index, position in enumerate(positions):
            chunk_event = chunk[position]
            yield
            try:
                event, result = group(chunk_event, self.rule_budget)
            except msgspec.DecodeError as error:
                dead.append((position, f"bad payload: {error}"))
                continue
            except Exception as error:  # noqa: BLE001 - one event that grouping fails on must not stop all others
                # A doubt: an event recorded as good fails here only after a change of code or rules. It may have been
                # published before the crash, and then it is counted and a dead letter.
                dead.append((position, f"grouping failed: {type(error).__name__}: {error}"))
                continue
            # Rules may have changed since the decision: the event must not count in a second issue.
            fingerprint = recorded[index] if recorded else result.fingerprint
            if published is not None:
                if fingerprint >= LEAST and position not in published:
                    # Its id came earlier, in a record that has expired. A doubt: a rule that has changed since may have
                    # dropped it. Then its outcome is reported again, as a duplicate.
                    repeated.append(position)
                    continue
                # If today's rules drop it, it still counts as published. `grouped` has no dropped events: for them
                # today's rules decide the reason.
                fingerprint = published.get(position, fingerprint)
            fingerprints.append(fingerprint)
            if fingerprint >= LEAST:
                self._keep(position, chunk_event, result, fingerprint)
                count(chunk_event, event, result, fingerprint)
            else:
                outcomes.dead(chunk_event, DROP_REASONS[fingerprint])
        if self.later and len(positions) < len(chunk):
            others = yield from self._dead_before(positions)
            dead += [(position, UNREADABLE) for position in others]
        for position, reason in dead:
            outcomes.dead(chunk[position], UNREADABLE)
            self._dead_letter(chunk[position], reason)
        if repeated or len(positions) + len(record.dead) != len(chunk):
            first = {*positions, *(position for position, _ in dead)}.difference(repeated)
            self._count_duplicates(outcomes, first)
        self._finish(outcomes)
        # With `dead` and no fingerprints it is a recorded decision too: all its new events were dead.
        if recorded or record.dead:
            return record
        return _completed(record, fingerprints, [position for position, _ in dead], repeated)

    def _dead_before(self, positions: Collection[int]) -> Generator[None, None, list[int]]:
        """The other positions whose events were dead letters before a later record carried their ids again.

        Yields before each event.
        """
        keys = split(id_keys([event.project for event in self.chunk], [event.id for event in self.chunk]))
        tried, budget = {keys[position] for position in positions}, RuleBudget()
        dead: list[int] = []
        for position, (key, chunk_event) in enumerate(zip(keys, self.chunk, strict=True)):
            if key in tried:
                continue
            tried.add(key)
            yield
            try:
                self.fingerprinter.group(chunk_event, budget)
            except Exception:  # noqa: BLE001 - as in `run`
                # Keys are hashes: to find one across two others is as unlikely as two equal ones.
                if any(key in record.keys for record in self.later.values()):
                    dead.append(position)
        return dead

    def _keep(self, position: int, chunk_event: ChunkEvent, result: EventGrouping, fingerprint: int) -> None:
        grouping = result.grouping
        key = (chunk_event.project, fingerprint, grouping.rule)
        index = self.indexes.get(key)
        if index is None:
            index = self.indexes[key] = len(self.groupings)
            self.projects.append(chunk_event.project)
            if grouping.fingerprint != fingerprint:
                grouping = Grouping(fingerprint, grouping.version, grouping.rule, grouping.parts)
            self.groupings.append(grouping)
        self.kept.append(position)
        self.grouping_of.append(index)
        if self.output.grouped_events is not None:
            grouped = GroupedEvent(self.source.offset, chunk_event, self.groupings[index])
            self.output.grouped_events.append(grouped)

    def _dead_letter(self, chunk_event: ChunkEvent, reason: str) -> None:
        value = encode_chunk([chunk_event])
        headers = [(FORMAT_HEADER, EVENTS_FORMAT)]
        self.output.dead.append(
            DeadEvent(self.source.offset, self.source.key, value, headers, reason, chunk_event.project)
        )

    def _count_duplicates(self, outcomes: RecordOutcomes, first: Collection[int]) -> None:
        """Count the events at other positions than those that carry an id for the first time."""
        for position, chunk_event in enumerate(self.chunk):
            if position not in first:
                outcomes.duplicate(chunk_event)
                self.output.duplicates += 1

    def _finish(self, outcomes: RecordOutcomes) -> None:
        output, offset = self.output, self.source.offset
        if self.kept:
            days = self.fingerprinter.retention.days
            minutes = [self.chunk[position].received_ms // MINUTE_MS for position in self.kept]
            grouped = GroupedRecord(
                output.partition,
                offset,
                crc32(self.source.value),
                self.kept,
                self.grouping_of,
                self.groupings,
                self.projects,
                {project: days(project) for project in set(self.projects)},
                minutes if len(set(minutes)) > 1 else minutes[:1],
            )
            headers = [
                (FORMAT_HEADER, GROUPED_FORMAT),
                (SOURCE_HEADER, source_position(output.partition, offset)),
            ]
            output.grouped.append(Message(None, encode_grouped(grouped), headers))
            increments = SourceIncrements(output.partition, offset, self.increments.finish())
            output.increments.append(increments)
        for project, project_outcomes in outcomes.finish().items():
            output.outcomes.setdefault(project, []).extend(project_outcomes)
        if skipped := self.rule_budget.skipped + self.owner_budget.skipped:
            output.rules_skipped += rules_skipped(output.partition, offset, skipped)
        output.events += len(self.chunk)
        output.new += len(self.kept)
        if self.chunk:
            oldest = min(event.received_ms for event in self.chunk)
            output.oldest_received_ms = min(output.oldest_received_ms or oldest, oldest)


def source_position(partition: int, offset: int) -> bytes:
    """A position in `events`, as the header `source` has it."""
    return b"%d/%d" % (partition, offset)


def _completed(
    record: DedupRecord, fingerprints: list[int], dead: list[int], repeated: list[int]
) -> DedupRecord:
    packed = struct.pack(f"<{len(fingerprints)}Q", *fingerprints)
    if not dead and not repeated:
        return DedupRecord(record.offset, record.total, record.new, record.keys, packed, ahead=record.ahead)
    excluded = {*dead, *repeated}
    new = [position for position in record.positions if position not in excluded]
    pairs = zip(record.positions, split(record.keys), strict=True)
    left = [key for position, key in pairs if position not in excluded]
    keys = b"".join(left)
    ahead = [(days, b"".join(key for key in split(joined) if key in left)) for days, joined in record.ahead]
    ahead = [(days, joined) for days, joined in ahead if joined]
    return replace(record, new=new, keys=keys, fingerprints=packed, dead=tuple(dead), ahead=tuple(ahead))
