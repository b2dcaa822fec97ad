"""The aggregator: folds increments, commands and signals of `issue-deltas` into one record an issue.

For each batch of a partition (the words are those of `docs/glossary.md`, "Stages"):

1. *In*: records from the next offset on. Repeats are dropped; a gap stops the worker.
2. *Decide*: increments are folded (`Fold.add_increment`, which drops those that an issue's position covers); commands
   and signals change states (`BatchChanges`). Invalid ones and refused commands become dead letters.
3. *Publish*, after a look whether the partition is still owned, `issue-activity`, then signals and forwarded
   commands in `issue-deltas`, then `dead-letters`.
4. *Record* the changed issues in the table `issues`, then the position in `issue-deltas` in the table `seen`.
5. *Commit*: the agent acknowledges the records. The next offset is restored from the position in `seen`.

Each step is safe, on all in-sync replicas, before the next begins. A crash loses the state in memory, and the
batch is read again:

- before 4: it is decided again with the same result, so activities repeat with equal ids, and readers drop
  them. Activities come first, because once an issue is recorded its increments are repeats and publish
  nothing;
- within 4: each issue that was recorded drops its increments, commands and signals of the batch again;
- after 4: only the acknowledgement is missing, and nothing is repeated;
- with `issues` lost, trimmed, or overwritten by a late write of an old owner: the sums stored with the position
  reveal it, and the log is replayed from its start, which changes nothing in complete issues. If the log has
  expired since, `IssuesLost` stops the worker.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from broker.batch_producer import BatchProducer
from broker.dead_events import DeadEvent
from broker.message import Message
from processors.aggregator.batch_changes import BadCommand, BatchChanges
from processors.aggregator.issue_fold import Fold
from processors.aggregator.issue_merges import RefusedChange
from processors.aggregator.position import (
    DeltasPosition,
    decode_position,
    deltas_key,
    encode_position,
)
from processors.batch_table import BatchTable
from processors.partition_stage import LIMIT, Output, PartitionStage, TopicNames
from processors.positions import SourceRecord
from processors.processors_metrics import ProcessorsMetrics
from schemas.ids import hex64, parse_hex64
from schemas.increments import SourceIncrements, decode_bundle, is_bundle
from schemas.issues import DeltaRecord, decode_delta, encode_json
from schemas.topics import Topic

CACHED_FOLDS: Final = 10_000
"""Issues whose folds are cached between batches, all partitions together."""


class IssuesLost(Exception):
    """Issues are missing and the log doesn't reach back to their beginning: the rest of it would count too few."""


class _Since(Struct, gc=False, frozen=True):
    since: int = -1


class _Versioned(Struct, gc=False):
    """The fields of an issue's record that a recovery adds up."""

    version: int = 0
    life: _Since = _Since()


_decode_version = msgspec.json.Decoder(_Versioned).decode


def supersedes(value: bytes, stored: bytes) -> bool:
    """Whether an issue's record may replace a stored one: a late write of an old owner has a smaller version."""
    return _decode_version(value).version >= _decode_version(stored).version


class DeltasState:
    """The state of one partition of `issue-deltas`, as `DeltasPosition` has it, with cached folds by issue."""

    def __init__(self, partition: int, next_offset: int, versions: int, until: int) -> None:
        self.partition = partition
        self.next_offset = next_offset
        self.versions = versions
        self.until = until
        self.folds: dict[int, Fold] = {}


class AggregatorStage(PartitionStage[DeltasState]):
    """Handles batches of `issue-deltas`, one at a time: the caller ensures it."""

    name = "aggregator"
    source = "issue-deltas"

    def __init__(
        self,
        names: TopicNames,
        partition_count: int,
        issues: BatchTable,
        seen: BatchTable,
        producer: BatchProducer,
        metrics: ProcessorsMetrics,
        *,
        bad_limit: int = LIMIT,
    ) -> None:
        super().__init__(names, partition_count, producer, metrics, bad_limit)
        self._issues = issues
        self._seen = seen

    def restore(self, partition: int, log_start: int) -> bool:
        """Restore a partition from its recovered tables.

        Returns False if the log is replayed from its start to repair `issues`. A late write of an old state
        is seconds old, so the log has the changes that it lacks. Missing issues may be older than the log:
        raises IssuesLost, with nothing restored.
        """
        part = self._issues.part(partition)
        found = [_decode_version(value) for value in part.values()]
        versions = sum(one.version for one in found)
        recorded = self._seen.part(partition).get(deltas_key(partition))
        position = decode_position(recorded) if recorded else None
        # Issues opened after the position don't make up for lost ones before it.
        held = len(part) if position is None else sum(one.life.since <= position.until for one in found)
        whole = position is None or (held >= position.issues and versions >= position.versions)
        # Both tables lost their part of a partition that was processed before.
        unknown = position is None and not part
        if log_start and (unknown or (position is not None and held < position.issues)):
            issues = (
                f"{self._names[Topic.ISSUES]}/{partition} holds {held} "
                f"of {position.issues if position else '?'} issues"
            )
            log = f"{self._names[Topic.ISSUE_DELTAS]}/{partition} begins at {log_start}"
            raise IssuesLost(f"{issues}, and {log}: `svc rebuild issues` builds them again")
        next_offset = log_start
        if position is not None and whole:
            next_offset = max(log_start, position.offset + 1)
        until = max((one.life.since for one in found), default=-1)
        self._states[partition] = DeltasState(partition, next_offset, versions, until)
        return whole

    async def handle_batch(self, by_partition: Mapping[int, Sequence[SourceRecord]]) -> None:
        """Handle records of several partitions. On return all their outputs are safe.

        Raises OffsetGap, TooManyBad, KafkaError or PartitionsLost: the worker must stop without acknowledging.
        """
        await asyncio.gather(*(self._handle(self._states[p], r) for p, r in by_partition.items()))

    async def _handle(self, state: DeltasState, records: Sequence[SourceRecord]) -> None:
        new = self._new_records(state, records)
        if not new:
            return
        state.next_offset += len(new)
        changes, dead = await self._decide(state, new)
        if changes.activities or changes.deltas or dead:
            # They are published before anything is recorded, so an owner that lost the partition must notice here.
            await self._seen.check_owner(state.partition)
            await self._publish(self._outputs(state.partition, changes, dead))
        self._metrics.dead.labels(self.name).inc(len(dead))
        await self._record(state, changes)
        self._metrics.records.labels(self.name).inc(len(new))
        self._evict(state)

    async def _decide(
        self, state: DeltasState, records: Sequence[SourceRecord]
    ) -> tuple[BatchChanges, list[DeadEvent]]:
        changes = BatchChanges()
        dead: list[DeadEvent] = []
        refused = 0
        for record in records:
            try:
                self._apply(state, record, changes)
            except (msgspec.DecodeError, BadCommand, RefusedChange) as error:
                # A refused command of a user doesn't mean that processing is broken.
                refused += isinstance(error, RefusedChange)
                dead.append(
                    DeadEvent(record.offset, record.key, record.value, record.headers, str(error), None)
                )
            await asyncio.sleep(0)
        changes.finish()
        self._limit.add_batch(len(records) - len(dead) + refused, len(dead) - refused)
        return changes, dead

    def _apply(self, state: DeltasState, record: SourceRecord, changes: BatchChanges) -> None:
        if is_bundle(record.value):
            self._fold(state, record.offset, decode_bundle(record.value), changes)
            return

        def find(issue: str) -> Fold | None:
            number = parse_hex64(issue)
            return None if number is None else self._find(state, number)

        def keep(fold: Fold) -> None:
            state.folds[int(fold.id, 16)] = fold

        delta = decode_delta(record.value)
        if delta.command is not None:
            changes.command(record.offset, delta.command, find)
        elif delta.signal is not None:
            changes.signal(record.offset, delta.signal, find, keep)
        else:
            raise BadCommand("neither increments nor a command nor a signal")

    def _fold(
        self, state: DeltasState, at: int, bundle: Sequence[SourceIncrements], changes: BatchChanges
    ) -> None:
        folds, dirty = state.folds, changes.dirty
        folded = 0
        for source in bundle:
            partition, offset = source.partition, source.offset
            for increment in source.increments:
                fold = folds.get(increment.issue) or self._find(state, increment.issue)
                if fold is None:
                    fold = folds[increment.issue] = Fold.new(increment, at)
                is_first = not fold.has_events
                if not fold.add_increment(partition, offset, increment):
                    continue
                folded += 1
                dirty[fold.id] = fold
                if is_first or fold.stands_out or not fold.is_open:
                    changes.increment(fold, partition, offset, increment, is_first=is_first)
        self._metrics.increments.inc(folded)

    def _find(self, state: DeltasState, issue: int) -> Fold | None:
        fold = state.folds.get(issue)
        if fold is None:
            value = self._issues.part(state.partition).get(hex64(issue).encode())
            if value is not None:
                fold = state.folds[issue] = Fold.restore(value)
        return fold

    def _outputs(self, partition: int, changes: BatchChanges, dead: list[DeadEvent]) -> Iterator[Output]:
        activities = [Message(a.issue.encode(), encode_json(a)) for a in changes.activities]
        yield Topic.ISSUE_ACTIVITY, partition, activities
        for target, deltas in self._by_target(changes.deltas).items():
            yield Topic.ISSUE_DELTAS, target, deltas
        yield from self._dead_letters(Topic.ISSUE_DELTAS, partition, dead)

    def _by_target(self, deltas: list[tuple[str, DeltaRecord]]) -> dict[int, list[Message]]:
        """Records for other issues by their partition, in order."""
        by_target: dict[int, list[Message]] = {}
        for issue, delta in deltas:
            target = int(issue, 16) % self._partition_count
            by_target.setdefault(target, []).append(Message(None, encode_json(delta)))
        return by_target

    async def _record(self, state: DeltasState, decided: BatchChanges) -> None:
        partition, dirty = state.partition, decided.dirty
        changes = [(issue.encode(), fold.encoded()) for issue, fold in dirty.items()]
        state.versions += sum(fold.version_growth() for fold in dirty.values())
        await self._issues.write(partition, changes)
        issues = len(self._issues.part(partition))
        last = state.next_offset - 1
        state.until = max(state.until, last)
        position = DeltasPosition(last, issues, state.versions, state.until)
        await self._seen.write(partition, [(deltas_key(partition), encode_position(position))])
        self._metrics.issues_written.inc(len(changes))

    def _evict(self, state: DeltasState) -> None:
        """Keep the folds that were added last."""
        surplus = len(state.folds) - CACHED_FOLDS // max(1, len(self._states))
        for issue in list(state.folds)[: max(0, surplus)]:
            del state.folds[issue]
