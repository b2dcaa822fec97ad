"""The grouper's effects, in the order that makes them exact: record, forward, acknowledge.

What a crash leaves undone is done again from the records: at most the last take of each partition.
"""

import asyncio
import time
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from itertools import islice

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from broker.batch_producer import BatchProducer, WrittenBatch
from broker.message import Message
from processors.faust_app.tables import BatchTable
from processors.grouper.batch import PartitionState, process
from processors.grouper.bundles import bundles
from processors.grouper.compaction import LogCompaction
from processors.grouper.dedup_log import (
    DedupEntry,
    decode_entry,
    decode_horizon,
    encode,
    entry_key,
    horizon_key,
    is_entry,
)
from processors.grouper.dedupe import Dedupe, Resumption, resumption
from processors.grouper.event_view import id_text
from processors.grouper.fingerprinter import Fingerprinter
from processors.grouper.grouped_tail import GroupedTail
from processors.grouper.output import BatchOutput, GroupedEvent, source_position
from processors.grouper.replay import ReplayBoundary
from processors.metrics import ProcessorsMetrics
from processors.positions import LogRecreated, OffsetGap, SourceRecord, new_records
from processors.stage import (
    LIMIT,
    PARTITION,
    WINDOW,
    DeadLetterLimit,
    TooManyBad,
    dead_letter_messages,
)
from processors.topic_names import TopicNames
from schemas.chunks import SOURCE_HEADER
from schemas.ids import hex64, issue_id
from schemas.issues import encode_json
from schemas.payload import decompress
from schemas.times import iso

STAGE = "grouper"


class GrouperStage:
    """Handles takes of `events`. One at a time: the caller sees to that."""

    def __init__(
        self,
        names: TopicNames,
        seen: BatchTable,
        forwarder: BatchProducer,
        grouper: Fingerprinter,
        grouped: GroupedTail,
        metrics: ProcessorsMetrics,
        *,
        days: int,
        each: bool,
        bad_limit: int = LIMIT,
    ) -> None:
        self._names = names
        self._seen = seen
        self._forwarder = forwarder
        self._grouper = grouper
        self._grouped = grouped
        self._metrics = metrics
        self._days = days
        self._each = each
        self._limit = DeadLetterLimit(limit=bad_limit)
        self._states: dict[int, PartitionState] = {}
        self._entries: dict[int, LogCompaction] = {}

    @property
    def partitions(self) -> set[int]:
        """The partitions that are held."""
        return set(self._states)

    def next_offset(self, partition: int) -> int | None:
        """The offset of `events` that is due, or None for a partition that is not held."""
        state = self._states.get(partition)
        return None if state is None else state.next_offset

    def drop(self, partition: int) -> None:
        """Forget a partition that went to another worker."""
        if self._states.pop(partition, None) is not None:
            del self._entries[partition]
            self._metrics.forget(partition, self._names.events, self._names.deltas)

    async def restore(self, partition: int, log_start: int, log_end: int) -> int:
        """Take up a partition from its recovered table; returns how many ids it remembers.

        Raises KafkaError, TimeoutError or Lost where what was forwarded before a loss of the table can't be found out, LogRecreated
        where it was forwarded from another log.
        """
        part = self._seen.part(partition)
        entries = {key: decode_entry(value) for key, value in part.items() if is_entry(key)}
        horizon = part.get(horizon_key(partition))
        start = max(log_start, decode_horizon(horizon) if horizon else 0)
        dedupe = Dedupe(self._days)
        dedupe.restore(entries.values())
        resumed = resumption(list(entries.values()), start)
        if resumed.next_offset is None and log_start:
            self._metrics.rebuilt.labels(STAGE).inc()
        next_offset = log_start if resumed.next_offset is None else resumed.next_offset
        boundary = await self._before(partition, resumed, next_offset)
        if boundary.last >= log_end:
            raise LogRecreated(f"events/{partition} ends at {log_end}, but {boundary.last} stands in grouped")
        self._states[partition] = PartitionState(partition, dedupe, next_offset, resumed.decided, boundary)
        self._entries[partition] = LogCompaction(partition, entries)
        self._limit.recall(_latest(entries.values()))
        self._measure(partition)
        return len(dedupe)

    async def _before(self, partition: int, resumed: Resumption, next_offset: int) -> ReplayBoundary:
        """What was forwarded before the table was lost, or while it is being built again after that."""
        known = resumed.boundary
        found = await self._grouped.read(partition, known) if resumed.lost or known else None
        if found is None or found.last < next_offset:
            return ReplayBoundary(resumed.forwarded)
        return found._replace(since=max(found.since, resumed.forwarded))

    async def handle_batch(self, by_partition: Mapping[int, Sequence[SourceRecord]]) -> None:
        """Handle records of several partitions. On return all that follows from them is safe.

        Raises OffsetGap, TooManyBad, KafkaError or Lost: the worker must stop, and nothing be acknowledged.
        """
        forwarded = [p for p in by_partition if not self._states[p].decided]
        try:
            emissions = [self._process(self._states[p], sources) for p, sources in by_partition.items()]
        except TooManyBad:
            # Started again in vain, and again, the worker must not send the last take's letters each time.
            for partition in forwarded:
                await self._settle(partition)
            raise
        await asyncio.gather(*(self._record(emission) for emission in emissions))
        begun = [written for emission in emissions for written in await self._forward(emission)]
        begun += await self._forward_increments(emissions)
        for written in begun:
            await written
        for emission in emissions:
            self._note(emission)
            await self._tidy(emission.partition)
            self._measure(emission.partition)

    def _process(self, state: PartitionState, sources: Sequence[SourceRecord]) -> BatchOutput:
        try:
            fresh = new_records("events", state.partition, state.next_offset, sources)
        except OffsetGap:
            self._metrics.gaps.labels(STAGE).inc()
            raise
        self._metrics.repeats.labels(STAGE).inc(len(sources) - len(fresh))
        emission = BatchOutput(state.partition, each=self._each)
        known = frozenset(state.decided)
        process(state, fresh, self._grouper, emission)
        again = len(known) - len(state.decided)
        self._metrics.forwarded_again.inc(again)
        # What was decided before has been recalled.
        bad = len({event.offset for event in emission.bad} - known)
        self._limit.note(len(fresh) - again - bad, bad)
        emission.records = len(fresh)
        self._metrics.rules_failed.set(self._grouper.failed_rules)
        for project, skipped in emission.rules_skipped:
            self._metrics.rules_skipped.labels(str(project)).inc(sum(one.count for one in skipped))
        return emission

    async def _record(self, emission: BatchOutput) -> None:
        """Before anything is forwarded: whoever comes after a crash must know what was decided."""
        changes = [
            (entry_key(emission.partition, entry.first, entry.last), encode(entry))
            for entry in emission.entries
        ]
        await self._seen.write(emission.partition, changes)
        self._entries[emission.partition].add(emission.entries)

    async def _forward(self, emission: BatchOutput) -> list[Awaitable[WrittenBatch]]:
        begin, names, partition = self._forwarder.begin, self._names, emission.partition
        begun = await begin(names.grouped, partition, emission.grouped)
        if emission.each:
            each = (_public(partition, grouped) for grouped in emission.each)
            begun += await begin(names.grouped_events, partition, each)
        for project, outcomes in (*emission.outcomes.items(), *emission.rules_skipped):
            message = Message(b"%d" % project, encode_json(outcomes))
            begun += await begin(names.outcomes, project % names.partitions, [message])
        if emission.bad:
            bad = dead_letter_messages(names.events, partition, STAGE, emission.bad)
            begun += await begin(names.dead_letters, PARTITION, bad)
        return begun

    async def _forward_increments(self, emissions: Iterable[BatchOutput]) -> list[Awaitable[WrittenBatch]]:
        begun = []
        sources = [source for emission in emissions for source in emission.increments]
        for target, values in bundles(sources, self._names.partitions).items():
            messages = [Message(None, value) for value in values]
            begun += await self._forwarder.begin(self._names.deltas, target, messages)
        return begun

    def _note(self, emission: BatchOutput) -> None:
        """Count what is safe by now."""
        metrics = self._metrics
        metrics.records.labels(STAGE).inc(emission.records)
        metrics.dead.labels(STAGE).inc(len(emission.bad))
        metrics.events.inc(emission.events)
        metrics.new.inc(emission.new)
        metrics.duplicates.inc(emission.duplicates)
        if emission.oldest_received_ms:
            metrics.age.observe(max(0.0, time.time() - emission.oldest_received_ms / 1000))

    async def _tidy(self, partition: int) -> None:
        """Merge small entries and let old ones go, once there are enough of them."""
        entries, state = self._entries[partition], self._states[partition]
        if not entries.is_due(state.dedupe.oldest_day):
            return
        part = self._seen.part(partition)
        for changes in entries.tidy(part, state.dedupe.oldest_day):
            await self._seen.write(partition, changes)

    async def _settle(self, partition: int) -> None:
        """Note that all entries are forwarded. Takes are handled one after the other, so they are unless the last is due again."""
        key = self._entries[partition].newest
        if key is not None:
            entry = decode_entry(self._seen.part(partition)[key])
            settled = replace(entry, batch_start=entry.last + 1)
            await self._seen.write(partition, [(key, encode(settled))])

    def _measure(self, partition: int) -> None:
        dedupe, label = self._states[partition].dedupe, str(partition)
        self._metrics.ids.labels(label).set(len(dedupe))
        self._metrics.id_bytes.labels(label).set(dedupe.size)
        self._metrics.table_entries.labels("seen", label).set(len(self._seen.part(partition)))


def _latest(entries: Iterable[DedupEntry]) -> list[tuple[int, bool]]:
    """The last records of a partition, as the limit recalls them."""
    ordered = sorted(entries, key=lambda entry: entry.last, reverse=True)
    latest = ((entry.watermark_ms, r.is_bad) for entry in ordered for r in reversed(entry.records))
    return list(islice(latest, WINDOW))


def _public(partition: int, grouped: GroupedEvent) -> Message:
    """One record of `grouped-events` (contract, section 3), with the position of the chunk that carried it."""
    event, grouping = grouped.event, grouped.grouping
    value = {
        "projectId": str(event.project),
        "issueId": hex64(issue_id(event.project, grouping.fingerprint)),
        "fingerprint": hex64(grouping.fingerprint),
        "grouping": {"version": grouping.version, "rule": grouping.rule, "parts": grouping.parts},
        "receivedAt": iso(event.received_ms),
        "sdk": event.sdk,
        "event": Raw(decompress(event.payload)),
    }
    key = f"{event.project}/{id_text(event.id)}".encode()
    headers = [(SOURCE_HEADER, source_position(partition, grouped.offset))]
    return Message(key, msgspec.json.encode(value), headers)
