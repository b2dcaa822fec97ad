"""The grouper: drops repeated ids of `events`, fingerprints each new event, and publishes chunks and increments.

For each batch (the words are those of `docs/glossary.md`, "Stages"):

1. *In*: records of some partitions, from the next offset on. Repeats are dropped; a gap stops the worker. Ids
   so old that they may have been forgotten are looked up where events are stored; the batch waits for the
   answer, and may be dropped meanwhile.
2. *Decide* (`batch.decide`): new ids (`dedupe`), fingerprints (`fingerprinter`), and all outputs.
3. *Record* the decisions in the table `seen`.
4. *Publish* `dead-letters`, `grouped-events` and `outcomes`; once these are safe, `grouped`; then `issue-deltas`.
5. *Commit*: the agent acknowledges the records. The next offset is restored from `seen`; the acknowledgement is a hint.

Each step is safe, on all in-sync replicas, before the next begins, and batches are handled one at a time.
After a crash `restore` finds the next offset (`replay.replay_start`):

- before 3 is complete: the batch is decided again where it is not recorded, with the same result, since
  nothing was published;
- between 3 and 4, or within 4: the batch is the last one recorded. It is replayed as recorded; the writer
  drops repeated chunks and the aggregator repeated increments by source position, ClickHouse repeated
  outcomes by source and sequence;
- after 4: the same, until the next batch is recorded. A dead letter may be written twice;
- with `seen` lost or trimmed: ids are restored from `events`, and the records published since the replay
  boundary are replayed as they are in `grouped`, once the last batch of a killed owner must have arrived
  there. Entries written meanwhile carry the boundary, so another crash finds it.

Compaction of `seen` comes last. It can stop anywhere: replacements are written before the entries they
supersede are tombstoned.
"""

import asyncio
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, Protocol

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from broker.batch_producer import BatchProducer
from broker.message import Message
from processors.batch_table import BatchTable
from processors.grouper.batch import (
    BatchOutput,
    DecodedBatch,
    GroupedEvent,
    PartitionState,
    decide,
    old_ids,
    read_batch,
    source_position,
)
from processors.grouper.compaction import LogCompaction
from processors.grouper.dedup_log import decode_entry, encode, entry_key
from processors.grouper.fingerprinter import Fingerprinter
from processors.grouper.grouped_tail import GroupedTail
from processors.grouper.record_counts import MAX_OUTCOMES, bundles
from processors.grouper.recovered import recovered
from processors.grouper.replay_start import ReplayBoundary, ReplayStart
from processors.partition_stage import LIMIT, WINDOW, Output, PartitionStage, TooManyBad, TopicNames
from processors.positions import LogRecreated, SourceRecord
from processors.processors_metrics import ProcessorsMetrics
from schemas.chunks import SOURCE_HEADER
from schemas.ids import hex64, id_text, issue_id
from schemas.issues import encode_json
from schemas.times import iso
from schemas.topics import Topic

PAUSE_SECONDS: Final = 0.05
"""Longest work on a batch without letting others run, but for a single event."""


IdsByPartition = Mapping[int, Collection[tuple[int, bytes]]]
"""Projects and ids by the partition of `events`."""


class IdLookUp(Protocol):
    """Looks up ids where events are stored."""

    async def among(self, ids: IdsByPartition) -> set[tuple[int, bytes]]:
        """Those of these ids whose event is or was stored; returns only once it is known."""
        ...


class GrouperStage(PartitionStage[PartitionState]):
    """Handles batches of `events`, one at a time: the caller ensures it."""

    name = "grouper"
    source = "events"

    def __init__(
        self,
        names: TopicNames,
        partition_count: int,
        seen: BatchTable,
        producer: BatchProducer,
        fingerprinter: Fingerprinter,
        tail: GroupedTail,
        metrics: ProcessorsMetrics,
        *,
        days: int,
        grouped_events: bool,
        bad_limit: int = LIMIT,
        stored_ids: IdLookUp | None = None,
    ) -> None:
        super().__init__(names, partition_count, producer, metrics, bad_limit)
        self.looking_up = False
        """Whether a batch is waiting for the answer of `stored_ids`."""
        self.assigned_at = 0.0
        """When the group last assigned partitions, by the monotonic clock."""
        self.decided = 0
        """Events decided: progress within a batch."""
        self._paused = 0.0
        self._stored_ids = stored_ids
        self._seen = seen
        self._fingerprinter = fingerprinter
        self._tail = tail
        self._days = days
        self._grouped_events = grouped_events
        self._entries: dict[int, LogCompaction] = {}

    def drop(self, partition: int) -> None:
        """Forget a partition that moved to another worker."""
        if self._states.pop(partition, None) is not None:
            del self._entries[partition]
            self._metrics.forget(partition, self._names[Topic.EVENTS], self._names[Topic.ISSUE_DELTAS])

    async def restore(self, partition: int, log_start: int, log_end: int) -> int:
        """Restore a partition from its recovered table; returns how many ids are indexed.

        Raises KafkaError, TimeoutError or PartitionsLost if the end of `grouped` can't be read after a loss
        of the table, and LogRecreated if `grouped` was published from another log.
        """
        # In a thread: millions of ids take seconds, and numpy lets other threads run.
        part = dict(self._seen.part(partition))
        start, dedupe, entries, latest = await asyncio.to_thread(
            recovered, partition, part, log_start, self._days, WINDOW
        )
        next_offset = log_start if start.next_offset is None else start.next_offset
        boundary = await self._boundary(partition, start, next_offset)
        if boundary.last >= log_end:
            raise LogRecreated(
                f"events/{partition} ends at {log_end}, but grouped has its record {boundary.last}"
            )
        self._states[partition] = PartitionState(partition, dedupe, next_offset, start.decided, boundary)
        self._entries[partition] = entries
        self._limit.restore(latest)
        self._measure(partition)
        return len(dedupe)

    async def _boundary(self, partition: int, start: ReplayStart, next_offset: int) -> ReplayBoundary:
        """The replay boundary: from `grouped` after a loss of the table and until it is passed.

        Otherwise it is the last batch's start.
        """
        recorded = start.boundary
        boundary = (
            await self._tail.read(partition, recorded, self.assigned_at) if start.lost or recorded else None
        )
        if boundary is None or boundary.last < next_offset:
            return ReplayBoundary(start.batch_start)
        return boundary._replace(since=max(boundary.since, start.batch_start))

    async def handle_batch(self, by_partition: Mapping[int, Sequence[SourceRecord]]) -> None:
        """Handle records of several partitions. On return all their outputs are safe.

        Raises OffsetGap, TooManyBad, KafkaError or PartitionsLost: the worker must stop without acknowledging.
        """
        self._paused = asyncio.get_running_loop().time()
        published = [p for p in by_partition if not self._states[p].decided]
        batches = [(self._states[p], self._read(self._states[p], r)) for p, r in by_partition.items()]
        stored = await self._stored(batches) if self._stored_ids else ()
        try:
            outputs = [await self._decide(state, batch, stored) for state, batch in batches]
        except TooManyBad:
            # Each restart ends here again: without this, each would replay the last batch's dead letters.
            for partition in published:
                await self._mark_published(partition)
            raise
        await asyncio.gather(*(self._record(output) for output in outputs))
        # `grouped` comes second: a rebuild takes the records before its last one for published.
        await self._publish(chain.from_iterable(self._first_outputs(output) for output in outputs))
        await self._publish((Topic.GROUPED, output.partition, output.grouped) for output in outputs)
        # Increments come last: all counted events are then stored, so that counts can be rebuilt from ClickHouse.
        await self._publish(self._increments(outputs))
        for output in outputs:
            self._count(output)
            await self._compact(output.partition)
            self._measure(output.partition)

    def _read(self, state: PartitionState, records: Sequence[SourceRecord]) -> DecodedBatch:
        return read_batch(state, self._new_records(state, records))

    async def _stored(self, batches: Sequence[tuple[PartitionState, DecodedBatch]]) -> set[bytes]:
        """The keys of old ids that are duplicates. Nothing has changed yet: the batch can still be dropped."""
        stored: set[bytes] = set()
        unknown: dict[bytes, tuple[int, bytes]] = {}
        by_partition: dict[int, Collection[tuple[int, bytes]]] = {}
        for state, batch in batches:
            old = old_ids(state, batch)
            stored |= old.known
            unknown |= old.unknown
            if old.unknown:
                by_partition[state.partition] = old.unknown.values()
        if unknown and self._stored_ids is not None:
            started, self.looking_up = time.perf_counter(), True
            try:
                found = await self._stored_ids.among(by_partition)
            finally:
                self.looking_up = False
            self._metrics.looked_up.inc(len(unknown))
            self._metrics.look_up_seconds.inc(time.perf_counter() - started)
            stored |= {key for key, pair in unknown.items() if pair in found}
        return stored

    async def _decide(
        self, state: PartitionState, batch: DecodedBatch, stored: Collection[bytes]
    ) -> BatchOutput:
        new = batch.sources
        output = BatchOutput(state.partition, grouped_events=self._grouped_events)
        recorded, time = frozenset(state.decided), asyncio.get_running_loop().time
        for _ in decide(state, batch, self._fingerprinter, output, stored):
            self.decided += 1
            if time() - self._paused > PAUSE_SECONDS:
                # Let others run: heartbeats, the followed projects, the health page.
                await asyncio.sleep(0)
                self._paused = time()
        replayed = len(recorded) - len(state.decided)
        self._metrics.forwarded_again.inc(replayed)
        # The limit already has the replayed records, from `restore`.
        bad = len({event.offset for event in output.dead} - recorded)
        self._limit.add_batch(len(new) - replayed - bad, bad)
        output.records = len(new)
        for project, skipped in output.rules_skipped:
            self._metrics.rules_skipped.labels(str(project)).inc(sum(outcome.count for outcome in skipped))
        return output

    async def _record(self, output: BatchOutput) -> None:
        """Write the decisions to `seen`: a successor must publish the same ones."""
        partition, epoch = output.partition, self._seen.epoch(output.partition)
        entries = {entry_key(partition, entry.first, entry.last, epoch): entry for entry in output.entries}
        changes = [(key, encode(entry)) for key, entry in entries.items()]
        await self._seen.write(partition, changes)
        self._entries[partition].add_entries(entries)

    def _first_outputs(self, output: BatchOutput) -> Iterator[Output]:
        partition = output.partition
        yield from self._dead_letters(Topic.EVENTS, partition, output.dead)
        if output.grouped_events:
            yield Topic.GROUPED_EVENTS, partition, (_public(partition, g) for g in output.grouped_events)
        for project, outcomes in (*output.outcomes.items(), *output.rules_skipped):
            pieces = (
                outcomes[start : start + MAX_OUTCOMES] for start in range(0, len(outcomes), MAX_OUTCOMES)
            )
            messages = [Message(b"%d" % project, encode_json(piece)) for piece in pieces]
            yield Topic.OUTCOMES, project % self._partition_count, messages

    def _increments(self, outputs: Iterable[BatchOutput]) -> Iterator[Output]:
        sources = [source for output in outputs for source in output.increments]
        for target, values in bundles(sources, self._partition_count).items():
            yield Topic.ISSUE_DELTAS, target, [Message(None, value) for value in values]

    def _count(self, output: BatchOutput) -> None:
        metrics = self._metrics
        metrics.records.labels(self.name).inc(output.records)
        metrics.dead.labels(self.name).inc(len(output.dead))
        metrics.events.inc(output.events)
        metrics.new.inc(output.new)
        metrics.duplicates.inc(output.duplicates)
        if output.oldest_received_ms:
            metrics.age.observe(max(0.0, time.time() - output.oldest_received_ms / 1000))

    async def _compact(self, partition: int) -> None:
        """Merge small entries and drop expired ones, once there are enough."""
        entries, oldest_day = self._entries[partition], self._states[partition].dedupe.oldest_day
        if entries.needed(oldest_day):
            for changes in entries.compact(self._seen.part(partition), oldest_day):
                await self._seen.write(partition, changes)

    async def _mark_published(self, partition: int) -> None:
        """Record that the last entry is published.

        It is, unless it is being replayed: batches are handled one at a time.
        """
        key = self._entries[partition].newest
        if key is not None:
            entry = decode_entry(self._seen.part(partition)[key])
            published = replace(entry, batch_start=entry.last + 1)
            await self._seen.write(partition, [(key, encode(published))])

    def _measure(self, partition: int) -> None:
        self._metrics.ids.labels(str(partition)).set(len(self._states[partition].dedupe))


def _public(partition: int, grouped: GroupedEvent) -> Message:
    """A record of `grouped-events` (contract, section 3), with the position of the chunk that carried the event."""
    event, grouping = grouped.event, grouped.grouping
    value = {
        "projectId": str(event.project),
        "issueId": hex64(issue_id(event.project, grouping.fingerprint)),
        "fingerprint": hex64(grouping.fingerprint),
        "grouping": {"version": grouping.version, "rule": grouping.rule, "parts": grouping.parts},
        "receivedAt": iso(event.received_ms),
        "sdk": event.sdk,
        "event": Raw(event.payload),
    }
    key = f"{event.project}/{id_text(event.id)}".encode()
    headers = [(SOURCE_HEADER, source_position(partition, grouped.offset))]
    return Message(key, msgspec.json.encode(value), headers)
