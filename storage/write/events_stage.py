"""The events' stage of the writer: inserts the records of `grouped` into ClickHouse in repeatable blocks.

For each batch, here a block (the words are those of `docs/glossary.md`, "Stages"; the reasons are in
`docs/decisions/writer.md`):

1. *In*: records of the assigned partitions, from the next offset on (`GroupedSource.read`), with the records of
   `events` that they are about (`SourceValues`), until the flush policy closes the block.
2. *Decide* (`Block.feed`): rows (`event_rows`); repeated source positions are dropped, unreadable events, and
   records whose source has expired, rejected.
3. *Record* the plan of the block, the ranges of all its partitions, in the metadata of an offset commit at
   their first records. The group refuses it once it has another owner.
4. *Publish*: insert the block under a deduplication token made of the plan's ranges (`BlockInserter`), then
   dead letters and outcomes.
5. *Commit* the next offsets with the last source positions.

A crash, or a rebalance, is repaired by the next owner of any of the partitions (`_restore`):

- before 3: the records are read again and may form another block; nothing was inserted;
- between 3 and 5: the owner finds the plan, reads its ranges again and replays exactly that block under the
  same token. If the token can't be relied on, the block is completed by ids. Dead letters may repeat, their
  outcomes count once;
- after 5: nothing is repeated. Records that a processor replayed are dropped by their source position, also
  after a restart;
- with the group's offsets lost: records of source positions that `events` had at that moment (`verify_until`)
  are completed by ids, whenever a processor forwards them.

A session lasts from one rebalance to the next; a client whose errors don't end by themselves is replaced.
Each shard of ClickHouse has its own part of a session, which reads and inserts its own partitions: an
unavailable server delays no other.
"""

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

import msgspec

from broker.consumer_lag import no_member_message
from broker.errors import CommitFailedError, IllegalStateError, KafkaError
from broker.send_errors import SendErrorKind, kind_of
from broker.waiting import until
from schemas.chunks import decode_grouped
from schemas.health import Health
from storage.exactly_once.block_plan import MAX_RANGES, BlockPlan, NoBlock
from storage.exactly_once.blocks import Block
from storage.exactly_once.insert_guard import Renewer
from storage.exactly_once.source_values import SourceValues
from storage.shards import Shard
from storage.write.block_inserter import BlockInserter
from storage.write.flush_policy import FlushPolicy, LastFlush
from storage.write.source import Committed, GroupedSource, Listener
from storage.write.writer_metrics import WriterMetrics

log = logging.getLogger(__name__)

_LAST_RECORDS: Final = 100
"""So many are read to learn a position: some may have been put back, with one that is long past."""
_READ_RECORDS: Final = 40
_READ_SECONDS: Final = 0.05
_IDLE_READ_SECONDS: Final = 0.5
_HELD_SECONDS: Final = 1.0
_HELD_FACTOR: Final = 5.0
_RESTART_SECONDS: Final = 0.25
_STOP_SECONDS: Final = 5.0
_CHECK_SECONDS: Final = 5.0
_JOIN_SECONDS: Final = 60.0
"""Longer than a session and a rebalance together."""
_LAG_SECONDS: Final = 5.0
_LAG_ANSWER_SECONDS: Final = 10.0


class StalePlan(Exception):
    """The plan may no longer be ours: it must be read again from the group."""


class EventsStage:
    """Writes the partitions that the group assigns to this member.

    A session lasts from one rebalance to the next.
    """

    def __init__(
        self,
        source: GroupedSource,
        inserters: Sequence[tuple[Shard, BlockInserter]],
        policy: FlushPolicy,
        health: Health,
        metrics: WriterMetrics,
    ) -> None:
        self._source = source
        self._inserters = inserters
        self._policy = policy
        self._health = health
        self._metrics = metrics
        self._partitions: set[int] = set()
        self._assigned = asyncio.Event()
        self._stopping = asyncio.Event()
        self._session: asyncio.Task[None] | None = None
        self._source_offsets: dict[int, int] = {}
        self._verify_until: dict[int, int] = {}
        self._next_offsets: dict[int, int] = {}
        self._joining_since = 0.0
        self._without_writer: set[int] = set()
        # Partitions whose sources don't come, each until when it is not read.
        self._held: dict[int, float] = {}

    async def run(self) -> None:
        """Write until stopped. Raises errors that waiting can't repair."""
        await self._join()
        lag = asyncio.create_task(show_lag(self._source, self._next_offsets, self._metrics))
        try:
            while not self._stopping.is_set():
                if await self._wait_for_partitions():
                    self._session = asyncio.create_task(self._write_shards())
                    await self._end_of(self._session)
        finally:
            lag.cancel()
            await self._on_revoked()
            await self._source.stop()

    def stop(self) -> None:
        """Finish the blocks in progress and return from `run`."""
        self._stopping.set()
        self._assigned.set()

    def writes(self, partition: int) -> bool:
        """Whether the group assigns the partition to this member now."""
        return self._assigned.is_set() and partition in self._partitions

    # One session.

    async def _write_shards(self) -> None:
        """Write to each shard until one of them has an error, which is raised."""
        parts = [
            asyncio.create_task(self._write(inserter, partitions))
            for shard, inserter in self._inserters
            if (partitions := shard.partitions_owned(self._partitions))
        ]
        try:
            done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_EXCEPTION)
            for part in done:
                part.result()
        finally:
            for part in parts:
                part.cancel()
            await asyncio.wait(parts)

    async def _write(self, inserter: BlockInserter, partitions: set[int]) -> None:
        await self._restore(inserter, partitions)
        self._health.set("grouped", ok=True)
        async with self._source.source_values(partitions) as sources:
            await self._write_blocks(inserter, partitions, sources)

    async def _write_blocks(
        self, inserter: BlockInserter, partitions: set[int], sources: SourceValues
    ) -> None:
        blocks = _OpenBlocks()
        flush: asyncio.Task[None] | None = None
        last = LastFlush()
        try:
            while not self._stopping.is_set():
                if flush is not None and flush.done():
                    flush.result()
                    flush, last = None, inserter.last
                if blocks.is_empty and flush is None:
                    last = self._policy.recent(last, time.monotonic())
                remaining = blocks.remaining(self._policy, last)
                if remaining <= 0 and flush is None:
                    flush = asyncio.create_task(self._flush(inserter, blocks.all()))
                    blocks = _OpenBlocks()
                elif blocks.full(self._policy) and flush is not None:
                    await asyncio.wait([flush])
                else:
                    idle = blocks.is_empty and flush is None
                    longest = _IDLE_READ_SECONDS if idle else _READ_SECONDS
                    await self._read(partitions, sources, blocks, min(remaining, longest) or longest)
            if flush is not None:
                await asyncio.wait([flush], timeout=_STOP_SECONDS)
        finally:
            if flush is not None:
                flush.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await flush

    async def _restore(self, inserter: BlockInserter, partitions: set[int]) -> None:
        """Replay the planned blocks, and seek each partition to its next offset."""
        committed = await self._source.committed(partitions)
        for plan in dict.fromkeys(at.state for at in committed.values() if isinstance(at.state, BlockPlan)):
            block = await until(self._stopping, self._read_plan(plan))
            if block is None:
                return
            log.info(
                "replaying a planned block of %d rows",
                len(block),
                extra={"event": "block_replayed", "token": plan.token("")},
            )
            ours = {p: at.offset for p, at in committed.items() if at.state == plan}
            await inserter.replay(block, self._renewer(plan, ours))
            ends = plan.ends(block.source_offsets)
            await self._source.commit({p: ends[p] for p in ours})
        committed = await self._source.committed(partitions)
        bounds = await self._source.bounds(partitions)
        source_ends: Mapping[int, int] = {}
        for partition, (begin, end) in bounds.items():
            at = committed.get(partition, Committed(begin, NoBlock()))
            state = at.state
            if isinstance(state, BlockPlan):
                raise StalePlan
            if at.offset > end:
                log.error(
                    "%s/%d ends before the next offset: the topic was recreated, reading from its start",
                    self._source.topic,
                    partition,
                    extra={"event": "topic_recreated"},
                )
                at, state = Committed(begin, NoBlock()), NoBlock()
            if state == NoBlock() and await inserter.has_rows():
                # The group's offsets were reset or have expired, or the topic was deleted with them: all that
                # `events` has may be stored already, and a processor may forward all of it again. If the log of
                # events was recreated, the topic's last records know more than its end.
                source_ends = source_ends or await self._source.source_ends()
                bound = max(source_ends[partition], await self._forwarded(partition, begin, end))
                state = NoBlock(state.source_offset, verify_until=bound)
                log.info(
                    "completing %s/%d by ids up to the source position %d",
                    self._source.topic,
                    partition,
                    bound,
                    extra={"event": "partition_completed"},
                )
            self._held.pop(partition, None)
            self._source_offsets[partition] = state.source_offset
            self._verify_until[partition] = state.verify_until
            self._next_offsets[partition] = max(at.offset, begin)
            self._source.seek(partition, self._next_offsets[partition])

    async def _forwarded(self, partition: int, begin: int, end: int) -> int:
        """The source position after those of the last records between two offsets of a partition; 0 for none."""
        positions = [0]
        if begin < end:
            span = {partition: (max(begin, end - _LAST_RECORDS), end - 1)}
            async for record in self._source.ranges(span):
                with suppress(msgspec.DecodeError):
                    positions.append(decode_grouped(record.value or b"").offset + 1)
        return max(positions)

    async def _read_plan(self, plan: BlockPlan) -> Block:
        # Known gap: a source that expires between the insert and its replay counts as a dead letter, but is stored.
        block = Block()
        spans = {span.partition: span for span in plan.ranges}
        block.source_offsets |= {partition: span.source_offset for partition, span in spans.items()}
        async with self._source.source_values(spans) as sources:
            async for record in self._source.ranges(
                {p: (span.first, span.last) for p, span in spans.items()}
            ):
                [source] = await sources.of([record])
                source_offset = block.source_offsets[record.partition]
                block.feed(record, source, source_offset, spans[record.partition].verify_until)
        return block

    async def _read(
        self, partitions: set[int], sources: SourceValues, blocks: "_OpenBlocks", timeout: float
    ) -> None:
        begun = time.monotonic()
        wanted = [partition for partition in partitions if self._held.get(partition, 0.0) <= begun]
        if not wanted:
            await asyncio.sleep(timeout)
            return
        batches = await self._source.read(wanted, timeout, _READ_RECORDS)
        for records in batches.values():
            await sources.prepare(records)
        for partition, records in batches.items():
            if self._stopping.is_set():
                return
            begun = time.monotonic()
            values = await sources.delivered(records)
            if values is None:
                # Its partition of `events` may have no leader: the other partitions go on.
                self._source.seek(partition, records[0].offset)
                self._hold(partition, time.monotonic() - begun)
                continue
            self._held.pop(partition, None)
            block = blocks.of(partition)
            source_offset = self._source_offsets[partition]
            for record, source in zip(records, values, strict=True):
                source_offset = block.feed(record, source, source_offset, self._verify_until[partition])
            self._source_offsets[partition] = source_offset

    def _hold(self, partition: int, seconds: float) -> None:
        """Don't read a partition for a while, which is longer than the `seconds` that its last read took."""
        if partition not in self._held:
            log.warning(
                "Kafka doesn't deliver the records of `events` for %s/%d: trying again",
                self._source.topic,
                partition,
                extra={"event": "sources_not_delivered"},
            )
        self._held[partition] = time.monotonic() + max(_HELD_SECONDS, _HELD_FACTOR * seconds)

    async def _flush(self, inserter: BlockInserter, blocks: Iterable[Block]) -> None:
        """Record the plan, insert, commit: block by block."""
        for block in blocks:
            plan = block.plan(await inserter.mark())
            ends = plan.ends(block.source_offsets)
            if block.passed_over:
                log.warning(
                    "%d records of %s were read again after their events had expired: "
                    "`svc reconcile` says whether all were stored",
                    block.passed_over,
                    self._source.topic,
                    extra={"event": "expired_passed_over"},
                )
            if len(block) or block.rejected or block.put_back:
                renew = self._renewer(plan, {r.partition: r.first for r in plan.ranges})
                await renew()
                await inserter.deliver(block, renew)
            await self._source.commit(ends)
            self._next_offsets |= {partition: offset for partition, (offset, _) in ends.items()}

    def _renewer(self, plan: BlockPlan, offsets: Mapping[int, int]) -> Renewer:
        """Commits the plan at the first records of its block."""
        return Renewer(
            plan, partial(self._source.commit, {p: (offset, plan) for p, offset in offsets.items()})
        )

    # Membership in the group.

    async def _wait_for_partitions(self) -> bool:
        """Wait for partitions; False after a while, and after replacing a client that gets none."""
        try:
            async with asyncio.timeout(_CHECK_SECONDS):
                await self._assigned.wait()
        except TimeoutError:
            joining = time.monotonic() - self._joining_since if self._joining_since else 0.0
            try:
                self._source.check()
            except KafkaError as error:
                await self._replace(f"not in the group: {error}", error)
            else:
                if joining > _JOIN_SECONDS:
                    await self._replace(f"no assignment for {joining:.0f} s")
                elif not self._joining_since:
                    await self._look_for_work()
            return False
        return True

    async def _look_for_work(self) -> None:
        """Report whether other members write the partitions not assigned to this one, or none does."""
        try:
            async with asyncio.timeout(_LAG_ANSWER_SECONDS):
                left = await self._source.without_writer()
        except (KafkaError, OSError, TimeoutError) as error:
            left, detail = {}, f"Kafka: {str(error) or 'no response'}"
        else:
            detail = no_member_message(self._source.topic, left)
        if self._partitions or self._joining_since:
            return
        self._health.set("grouped", ok=not detail, detail=detail or "no partition is left for this writer")
        self._show_without_writer(left)

    def _show_without_writer(self, lags: Mapping[int, int]) -> None:
        for partition in self._without_writer - lags.keys():
            self._metrics.lag.remove(self._source.topic, str(partition))
        for partition, records in lags.items():
            self._metrics.lag.labels(self._source.topic, partition).set(records)
        self._without_writer = set(lags)

    async def _replace(self, reason: str, error: Exception | None = None) -> None:
        """Replace the client: some of its errors never end."""
        self._health.set("grouped", ok=False, detail=f"Kafka: {reason}")
        log.warning("replacing the events' client: %s", reason, extra={"event": "events_client_replaced"})
        self._assigned.clear()
        await self._source.stop()
        await asyncio.sleep(_RESTART_SECONDS)
        if error is not None and kind_of(error) is SendErrorKind.DENIED:
            await until(self._stopping, self._source.wait_for_rights())
        await self._join()

    async def _join(self) -> None:
        self._start_joining()
        while not self._stopping.is_set():
            try:
                await self._source.start(Listener(self._on_revoked, self._on_assigned))
            except KafkaError as error:
                self._health.set("grouped", ok=False, detail=f"Kafka: {error}")
                log.warning("can't join the group, retrying: %s", error, extra={"event": "group_join_failed"})
                await asyncio.sleep(_RESTART_SECONDS)
            else:
                return

    async def _end_of(self, session: asyncio.Task[None]) -> None:
        try:
            await asyncio.wait([session])
        except asyncio.CancelledError:
            session.cancel()
            raise
        if session.cancelled():
            return
        error = session.exception()
        if isinstance(error, (CommitFailedError, IllegalStateError, StalePlan)):
            log.info(
                "the events' group was rebalanced: reading its plans again",
                extra={"event": "events_group_rebalanced"},
            )
        elif isinstance(error, (KafkaError, OSError)):
            await self._replace(str(error) or type(error).__name__, error)
            return
        elif error is not None:
            raise error
        if error is not None:
            await asyncio.sleep(_RESTART_SECONDS)

    async def _on_revoked(self) -> None:
        # Nothing may be committed from here until the group is joined again: the commit would carry the next
        # generation.
        self._assigned.clear()
        self._next_offsets.clear()
        if not self._stopping.is_set():
            self._start_joining()
        if self._session is not None and not self._session.done():
            self._session.cancel()
            await asyncio.wait([self._session])

    def _start_joining(self) -> None:
        self._joining_since = time.monotonic()
        self._health.set("grouped", ok=False, detail="joining the group")

    async def _on_assigned(self, partitions: set[int]) -> None:
        self._partitions = partitions
        self._joining_since = 0.0
        self._show_without_writer({})
        self._source.joined()
        log.info("writing partitions %s", sorted(partitions), extra={"event": "partitions_assigned"})
        if partitions:
            self._assigned.set()
        else:
            self._health.set("grouped", ok=False, detail="the group has assigned no partition")


class _OpenBlocks:
    """Blocks that still grow, at most `MAX_RANGES` partitions in each."""

    def __init__(self) -> None:
        self._blocks: dict[int, Block] = {}
        self._since = 0.0

    def of(self, partition: int) -> Block:
        if not self._blocks:
            self._since = time.monotonic()
        slot = partition // MAX_RANGES
        if slot not in self._blocks:
            self._blocks[slot] = Block()
        return self._blocks[slot]

    @property
    def is_empty(self) -> bool:
        return not self._blocks

    def all(self) -> list[Block]:
        return list(self._blocks.values())

    def full(self, policy: FlushPolicy) -> bool:
        return any(policy.full(_rows(block), block.columns.size) for block in self._blocks.values())

    def remaining(self, policy: FlushPolicy, last: LastFlush) -> float:
        if not self._blocks:
            return policy.wait_seconds
        age = time.monotonic() - self._since
        return min(
            policy.remaining(_rows(block), block.columns.size, age, last) for block in self._blocks.values()
        )


def _rows(block: Block) -> int:
    """The rows of a block, and what it holds for the dead letters."""
    return len(block) + len(block.rejected)


async def show_lag(
    source: GroupedSource,
    next_offsets: Mapping[int, int],
    metrics: WriterMetrics,
    check_seconds: float = _LAG_SECONDS,
) -> None:
    """Set the lag of each partition until cancelled, also while nothing is read.

    The stage changes `next_offsets` meanwhile.
    """
    shown: set[int] = set()
    while True:
        await asyncio.sleep(check_seconds)
        held = set(next_offsets)
        for partition in shown - held:
            metrics.lag.remove(source.topic, str(partition))
        shown &= held
        try:
            async with asyncio.timeout(_LAG_ANSWER_SECONDS):
                bounds = await source.bounds(held)
        except (KafkaError, OSError, TimeoutError) as error:
            # The last values remain; the session reports that Kafka is unavailable.
            log.debug(
                "can't read the end offsets of %s: %r", source.topic, error, extra={"event": "lag_unknown"}
            )
            continue
        for partition, (begin, end) in bounds.items():
            if partition in next_offsets:
                lag = end - max(begin, next_offsets[partition])
                metrics.lag.labels(source.topic, partition).set(max(0, lag))
                shown.add(partition)
