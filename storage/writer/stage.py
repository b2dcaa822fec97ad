"""Grouped events into ClickHouse: plan, insert, commit (design of the writer: `docs/decisions/writer.md`)."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final

from broker.errors import CommitFailedError, IllegalStateError, KafkaError
from schemas.health import Health
from schemas.payload import MissingDictionary
from storage.writer.blocks import Block, Retention
from storage.writer.flush_policy import FlushPolicy, LastFlush
from storage.writer.insert_block import BlockInserter, Renewer
from storage.writer.lag import show_lag
from storage.writer.manifest import MAX_RANGES, BlockManifest, NoBlock
from storage.writer.metrics import WriterMetrics
from storage.writer.source import Committed, GroupedSource, Listener

log = logging.getLogger(__name__)

_READ_RECORDS: Final = 40
_READ_SECONDS: Final = 0.05
_RESTART_SECONDS: Final = 0.25
_STOP_SECONDS: Final = 5.0
_DICTIONARY_SECONDS: Final = 3.0
_LOOK_SECONDS: Final = 5.0
_JOIN_SECONDS: Final = 60.0
"""Longer than a session and a rebalance together."""


class StaleManifest(Exception):
    """The plan may no longer be ours: it must be read again from the group."""


class EventsStage:
    """Writes the partitions that the group gives to this member, session by session: one from each rebalance to the next."""

    def __init__(
        self,
        source: GroupedSource,
        delivery: BlockInserter,
        retention: Retention,
        pace: FlushPolicy,
        health: Health,
        metrics: WriterMetrics,
    ) -> None:
        self._source = source
        self._delivery = delivery
        self._retention = retention
        self._pace = pace
        self._health = health
        self._metrics = metrics
        self._assigned: set[int] = set()
        self._given = asyncio.Event()
        self._stopping = asyncio.Event()
        self._session: asyncio.Task[None] | None = None
        self._seen: dict[int, int] = {}
        self._again: dict[int, int] = {}
        self._written: dict[int, int] = {}
        self._joining_since = 0.0

    async def run(self) -> None:
        """Write until stopped. Raises what is not a matter of waiting."""
        await self._join()
        lag = asyncio.create_task(show_lag(self._source, self._written, self._metrics))
        try:
            while not self._stopping.is_set():
                if await self._is_given():
                    self._session = asyncio.create_task(self._write())
                    await self._end_of(self._session)
        finally:
            lag.cancel()
            await self._revoked()
            await self._source.stop()

    async def _is_given(self) -> bool:
        """Wait for partitions; False after a while, once a client has been replaced that doesn't get any."""
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                await self._given.wait()
        except TimeoutError:
            joining = time.monotonic() - self._joining_since if self._joining_since else 0.0
            try:
                self._source.check()
            except KafkaError as error:
                await self._replace(f"the group is left: {error}")
            else:
                if joining > _JOIN_SECONDS:
                    await self._replace(f"the group has given nothing for {joining:.0f} s")
            return False
        return True

    async def _replace(self, why: str) -> None:
        """Another client: some faults of one never end."""
        self._health.set("grouped", ok=False, detail=f"Kafka: {why}")
        log.warning("the events' client is replaced: %s", why)
        self._given.clear()
        await self._source.stop()
        await asyncio.sleep(_RESTART_SECONDS)
        await self._join()

    async def _join(self) -> None:
        self._begin_to_join()
        while not self._stopping.is_set():
            try:
                await self._source.start(Listener(self._revoked, self._take_over))
            except KafkaError as error:
                self._health.set("grouped", ok=False, detail=f"Kafka: {error}")
                log.warning("can't join the group: %s", error)
                await asyncio.sleep(_RESTART_SECONDS)
            else:
                return

    def stop(self) -> None:
        """Finish the blocks under way and return from `run`."""
        self._stopping.set()
        self._given.set()

    async def _end_of(self, session: asyncio.Task[None]) -> None:
        try:
            await asyncio.wait([session])
        except asyncio.CancelledError:
            session.cancel()
            raise
        if session.cancelled():
            return
        error = session.exception()
        if isinstance(error, (CommitFailedError, IllegalStateError, StaleManifest)):
            log.info("the group has changed: reading its plans again")
        elif isinstance(error, (KafkaError, OSError)):
            await self._replace(str(error) or type(error).__name__)
            return
        elif isinstance(error, MissingDictionary):
            # Sound events that can't be read yet: whoever supplies the file finds them where they are.
            self._health.set("grouped", ok=False, detail=str(error))
            log.error("%s", error)
            await asyncio.sleep(_DICTIONARY_SECONDS)
        elif error is not None:
            raise error
        if error is not None:
            await asyncio.sleep(_RESTART_SECONDS)

    async def _revoked(self) -> None:
        # Before the group is joined again nothing may be committed any more: the commit would carry the next generation.
        self._given.clear()
        self._written.clear()
        if not self._stopping.is_set():
            self._begin_to_join()
        if self._session is not None and not self._session.done():
            self._session.cancel()
            await asyncio.wait([self._session])

    def _begin_to_join(self) -> None:
        self._joining_since = time.monotonic()
        self._health.set("grouped", ok=False, detail="joining the group")

    async def _take_over(self, partitions: set[int]) -> None:
        self._assigned = partitions
        self._joining_since = 0.0
        log.info("writing partitions %s", sorted(partitions))
        if partitions:
            self._given.set()
        else:
            self._health.set("grouped", ok=True, detail="no partition is left for this writer")

    async def _write(self) -> None:
        await self._catch_up()
        self._health.set("grouped", ok=True)
        gathered = _Gathered(self._retention)
        flush: asyncio.Task[None] | None = None
        last = LastFlush()
        try:
            while not self._stopping.is_set():
                if flush is not None and flush.done():
                    flush.result()
                    flush, last = None, self._delivery.last
                if gathered.is_empty and flush is None:
                    last = self._pace.recent(last, time.monotonic())
                remaining = gathered.remaining(self._pace, last)
                if remaining <= 0 and flush is None:
                    flush = asyncio.create_task(self._flush(gathered.blocks()))
                    gathered = _Gathered(self._retention)
                elif gathered.full(self._pace) and flush is not None:
                    await asyncio.wait([flush])
                else:
                    await self._gather(gathered, min(remaining, _READ_SECONDS) or _READ_SECONDS)
            if flush is not None:
                await asyncio.wait([flush], timeout=_STOP_SECONDS)
        finally:
            if flush is not None:
                flush.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await flush

    async def _gather(self, gathered: "_Gathered", timeout: float) -> None:
        for partition, records in (await self._source.read(timeout, _READ_RECORDS)).items():
            block = gathered.block_of(partition)
            seen, repeats = self._seen[partition], block.repeats
            for record in records:
                seen = block.feed(record, seen, self._again[partition])
            self._seen[partition] = seen
            self._metrics.repeats.inc(block.repeats - repeats)

    async def _flush(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            plan = block.plan(time.time_ns() // 1_000_000)
            ends = plan.ends(block.seen)
            if len(block) or block.refused or block.put_back:
                commit = self._committer({r.partition: r.first for r in plan.ranges})
                await commit(plan)
                await self._delivery.deliver(block, Renewer(plan, commit))
            await self._source.commit(ends)
            self._written |= {partition: offset for partition, (offset, _) in ends.items()}

    def _committer(self, offsets: Mapping[int, int]) -> Callable[[BlockManifest], Awaitable[None]]:
        """Commits a plan at the first records of a block."""

        async def commit(plan: BlockManifest) -> None:
            await self._source.commit({partition: (offset, plan) for partition, offset in offsets.items()})

        return commit

    async def _catch_up(self) -> None:
        """Repeat the blocks that were under way, and read each partition on from where it stands."""
        partitions = set(self._assigned)
        committed = await self._source.committed(partitions)
        for plan in {state.state for state in committed.values() if isinstance(state.state, BlockManifest)}:
            block = await self._planned(plan)
            self._metrics.repeated_blocks.inc()
            log.info("repeating a planned block of %d rows", len(block), extra={"token": plan.token("")})
            mine = {p: at.offset for p, at in committed.items() if at.state == plan}
            await self._delivery.repeat(block, Renewer(plan, self._committer(mine)))
            ends = plan.ends(block.seen)
            await self._source.commit({p: ends[p] for p in mine})
        committed = await self._source.committed(partitions)
        for partition, (begin, end) in (await self._source.bounds(partitions)).items():
            at = committed.get(partition, Committed(begin, NoBlock()))
            state = at.state
            if isinstance(state, BlockManifest):
                raise StaleManifest
            if at.offset > end:
                log.error(
                    "%s/%d ends before what was written: it was made anew", self._source.topic, partition
                )
                at, state = Committed(begin, NoBlock()), NoBlock()
            if state == NoBlock() and await self._delivery.has_rows():
                # The group's offsets were reset, or expired: what stands in the topic may be stored already.
                state = NoBlock(again=end)
                log.info("%s/%d is read by ids up to %d", self._source.topic, partition, end)
            self._seen[partition], self._again[partition] = state.seen, state.again
            self._written[partition] = max(at.offset, begin)
            self._source.seek(partition, self._written[partition])

    async def _planned(self, plan: BlockManifest) -> Block:
        block = Block(self._retention)
        for span in plan.ranges:
            seen = span.seen
            async for record in self._source.range(span.partition, span.first, span.last):
                seen = block.feed(record, seen, span.again)
            block.seen[span.partition] = seen
        return block


class _Gathered:
    """Blocks that grow, at most `MAX_RANGES` partitions in each."""

    def __init__(self, retention: Retention) -> None:
        self._retention = retention
        self._blocks: dict[int, Block] = {}
        self._since = 0.0

    def block_of(self, partition: int) -> Block:
        if not self._blocks:
            self._since = time.monotonic()
        slot = partition // MAX_RANGES
        if slot not in self._blocks:
            self._blocks[slot] = Block(self._retention)
        return self._blocks[slot]

    @property
    def is_empty(self) -> bool:
        return not self._blocks

    def blocks(self) -> list[Block]:
        return list(self._blocks.values())

    def full(self, pace: FlushPolicy) -> bool:
        return any(pace.full(len(block), block.columns.size) for block in self._blocks.values())

    def remaining(self, pace: FlushPolicy, last: LastFlush) -> float:
        if not self._blocks:
            return pace.wait_seconds
        age = time.monotonic() - self._since
        return min(
            pace.remaining(len(block), block.columns.size, age, last) for block in self._blocks.values()
        )
