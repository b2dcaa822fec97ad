"""The aggregator's effects: publish what changed, then the states, then the position; acknowledge last.

What a crash leaves undone comes again and is dropped by the positions in the states, increment by increment.
"""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence

import msgspec
from msgspec import Struct

from broker.batch_producer import BatchProducer, WrittenBatch
from broker.message import Message
from broker.stage import DeadEvent, dead_letter_messages
from processors.aggregator.changes import BadCommand, BatchChanges
from processors.aggregator.fold import Fold, created
from processors.aggregator.merges import RefusedChange
from processors.faust_app.tables import BatchTable
from processors.grouper.dedup_log import DeltasPosition, decode_position, deltas_key, encode
from processors.metrics import ProcessorsMetrics
from processors.positions import OffsetGap, SourceRecord, new_records
from processors.stage import LIMIT, DeadLetterLimit
from processors.topic_names import TopicNames
from schemas.ids import hex64, parse_hex64
from schemas.increments import SourceIncrements, decode_bundle, is_bundle
from schemas.issues import DeltaRecord, decode_delta, encode_json

STAGE = "aggregator"
HOT = 10_000
"""Issues whose folds are kept between takes, all partitions together."""


class IssuesLost(Exception):
    """Issues are missing, and the log doesn't reach back to their beginning: what is left of it would count too few."""


class _Versioned(Struct, gc=False):
    """As much of an issue's record as a recovery adds up."""

    version: int = 0


_decode_version = msgspec.json.Decoder(_Versioned).decode


class DeltasState:
    """What is known of one partition of `issue-deltas` and of the issues in it."""

    def __init__(self, partition: int, next_offset: int, versions: int) -> None:
        self.partition = partition
        self.next_offset = next_offset
        self.versions = versions
        self.hot: dict[int, Fold] = {}


class AggregatorStage:
    """Handles takes of `issue-deltas`. One at a time: the caller sees to that."""

    def __init__(
        self,
        names: TopicNames,
        issues: BatchTable,
        seen: BatchTable,
        forwarder: BatchProducer,
        metrics: ProcessorsMetrics,
        *,
        bad_limit: int = LIMIT,
    ) -> None:
        self._names = names
        self._issues = issues
        self._seen = seen
        self._forwarder = forwarder
        self._metrics = metrics
        self._limit = DeadLetterLimit(limit=bad_limit)
        self._states: dict[int, DeltasState] = {}

    @property
    def partitions(self) -> set[int]:
        """The partitions that are held."""
        return set(self._states)

    def next_offset(self, partition: int) -> int | None:
        """The offset of `issue-deltas` that is due, or None for a partition that is not held."""
        state = self._states.get(partition)
        return None if state is None else state.next_offset

    def drop(self, partition: int) -> None:
        """Forget a partition that went to another worker."""
        self._states.pop(partition, None)

    def restore(self, partition: int, log_start: int) -> bool:
        """Take up a partition from its recovered tables.

        False where issues are missing (their topic was emptied or trimmed) or an old state was written late: then the log is
        folded again from its start, which changes nothing in the issues that are whole. A late state is seconds old, so the
        log holds what came since; missing issues may be older than it: raises IssuesLost, with nothing taken up.
        """
        part = self._issues.part(partition)
        versions = sum(_decode_version(value).version for value in part.values())
        recorded = self._seen.part(partition).get(deltas_key(partition))
        position = decode_position(recorded) if recorded else None
        whole = position is None or (len(part) >= position.issues and versions >= position.versions)
        # Each table has lost its share of a partition in which something was done before.
        unknown = position is None and not part
        if log_start and (unknown or (position is not None and len(part) < position.issues)):
            held = f"{self._names.issues}/{partition} holds {len(part)} of {position.issues if position else '?'} issues"
            log = f"{self._names.deltas}/{partition} begins at {log_start}"
            raise IssuesLost(f"{held}, and {log}: `svc rebuild issues` builds them again")
        next_offset = log_start
        if position is not None and whole:
            next_offset = max(log_start, position.offset + 1)
        if not whole:
            self._metrics.rebuilt.labels(STAGE).inc()
        self._states[partition] = DeltasState(partition, next_offset, versions)
        self._metrics.table_entries.labels("issues", str(partition)).set(len(part))
        return whole

    async def handle_batch(self, by_partition: Mapping[int, Sequence[SourceRecord]]) -> None:
        """Handle records of several partitions. On return all that follows from them is safe.

        Raises OffsetGap, TooManyBad, KafkaError or Lost: the worker must stop, and nothing be acknowledged.
        """
        await asyncio.gather(*(self._share(self._states[p], s) for p, s in by_partition.items()))

    async def _share(self, state: DeltasState, sources: Sequence[SourceRecord]) -> None:
        fresh = self._new_records(state, sources)
        if not fresh:
            return
        changes = BatchChanges()
        bad: list[DeadEvent] = []
        refused = 0
        for source in fresh:
            try:
                self._apply(state, source, changes)
            except (msgspec.DecodeError, BadCommand, RefusedChange) as error:
                # A person's change that can't be made says nothing about the health of what is processed.
                refused += isinstance(error, RefusedChange)
                bad.append(
                    DeadEvent(source.offset, source.key, source.value, source.headers, str(error), None)
                )
            await asyncio.sleep(0)
        changes.finish()
        self._limit.add(len(fresh) - len(bad) + refused, len(bad) - refused)
        await self._publish(state.partition, changes, bad)
        await self._write(state, changes.dirty)
        self._metrics.records.labels(STAGE).inc(len(fresh))
        self._cool(state)

    def _new_records(self, state: DeltasState, sources: Sequence[SourceRecord]) -> list[SourceRecord]:
        try:
            fresh = new_records("issue-deltas", state.partition, state.next_offset, sources)
        except OffsetGap:
            self._metrics.gaps.labels(STAGE).inc()
            raise
        self._metrics.repeats.labels(STAGE).inc(len(sources) - len(fresh))
        state.next_offset += len(fresh)
        return fresh

    def _apply(self, state: DeltasState, source: SourceRecord, changes: BatchChanges) -> None:
        if is_bundle(source.value):
            self._fold(state, decode_bundle(source.value), changes)
            return

        def find(issue: str) -> Fold | None:
            number = parse_hex64(issue)
            return None if number is None else self._known(state, number)

        delta = decode_delta(source.value)
        if delta.command is not None:
            changes.command(source.offset, delta.command, find)
        elif delta.signal is not None:
            changes.signal(source.offset, delta.signal, find)
        else:
            raise BadCommand("neither increments nor a command nor a signal")

    def _fold(self, state: DeltasState, bundle: Sequence[SourceIncrements], changes: BatchChanges) -> None:
        hot, dirty = state.hot, changes.dirty
        folded = repeated = 0
        for source in bundle:
            partition, offset = source.partition, source.offset
            for increment in source.increments:
                fold = hot.get(increment.issue) or self._known(state, increment.issue)
                if fold is None:
                    fold = hot[increment.issue] = Fold.opened(increment)
                    changes.activities.append(created(increment))
                if not fold.add(partition, offset, increment):
                    repeated += 1
                    continue
                folded += 1
                dirty[fold.id] = fold
                if not fold.quiet:
                    changes.increment(fold, partition, offset, increment)
        self._metrics.increments.inc(folded)
        self._metrics.increments_repeated.inc(repeated)

    def _known(self, state: DeltasState, issue: int) -> Fold | None:
        """The fold of an issue that there is."""
        fold = state.hot.get(issue)
        if fold is None:
            value = self._issues.part(state.partition).get(hex64(issue).encode())
            if value is not None:
                fold = state.hot[issue] = Fold.read(value)
        return fold

    async def _publish(self, partition: int, changes: BatchChanges, bad: list[DeadEvent]) -> None:
        """Before the states: once a state is written, its increments are repeats and nothing more would be published."""
        messages = [Message(a.issue.encode(), encode_json(a)) for a in changes.activities]
        begun: list[Awaitable[WrittenBatch]] = list(
            await self._forwarder.begin(self._names.activity, partition, messages)
        )
        for target, signals in self._by_target(changes.deltas).items():
            begun += await self._forwarder.begin(self._names.deltas, target, signals)
        if bad:
            letter = dead_letter_messages(self._names.deltas, partition, STAGE, bad)
            begun += await self._forwarder.begin(self._names.dead_letters, 0, letter)
        for written in begun:
            await written
        self._metrics.dead.labels(STAGE).inc(len(bad))

    def _by_target(self, deltas: list[tuple[str, DeltaRecord]]) -> dict[int, list[Message]]:
        """Records for other issues by the partition of those, in their order."""
        found: dict[int, list[Message]] = {}
        for issue, delta in deltas:
            target = int(issue, 16) % self._names.partitions
            found.setdefault(target, []).append(Message(None, encode_json(delta)))
        return found

    async def _write(self, state: DeltasState, dirty: dict[str, Fold]) -> None:
        partition = state.partition
        changes = [(issue.encode(), fold.encoded()) for issue, fold in dirty.items()]
        state.versions += sum(fold.grown() for fold in dirty.values())
        await self._issues.write(partition, changes)
        issues = len(self._issues.part(partition))
        position = DeltasPosition(state.next_offset - 1, issues, state.versions)
        await self._seen.write(partition, [(deltas_key(partition), encode(position))])
        self._metrics.issues_written.inc(len(changes))
        self._metrics.table_entries.labels("issues", str(partition)).set(issues)

    def _cool(self, state: DeltasState) -> None:
        """Keep the folds that were used last."""
        surplus = len(state.hot) - HOT // max(1, len(self._states))
        for key in list(state.hot)[: max(0, surplus)]:
            del state.hot[key]
