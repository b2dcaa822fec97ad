"""Restoring the stages after a recovery of the tables: reading continues at the next offsets that they restore."""

import asyncio
import gc
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from faust.types import TP

from processors.aggregator.aggregator_stage import AggregatorStage
from processors.faust_app.fence import RebalanceFence
from processors.grouper.grouper_stage import GrouperStage
from processors.partition_stage import TopicNames
from processors.positions import LogRecreated
from processors.processors_metrics import ProcessorsMetrics
from schemas.health import Part
from schemas.topics import Topic

log = logging.getLogger(__name__)
TOGETHER: Final = 2
"""Partitions that are restored at the same time: more would take memory, and wait for the interpreter's lock."""
Offsets = Mapping[TP, int | None]


class LogTooShort(Exception):
    """A source topic ends before the next offset: it was recreated, and its records would be dropped as repeats."""


class Recovery:
    """Restores both stages from their tables. `read` returns how many table records were read so far."""

    def __init__(
        self,
        names: TopicNames,
        grouper: GrouperStage,
        aggregator: AggregatorStage,
        fence: RebalanceFence,
        metrics: ProcessorsMetrics,
        read: Callable[[], int],
    ) -> None:
        self._events, self._deltas = names[Topic.EVENTS], names[Topic.ISSUE_DELTAS]
        self._grouper = grouper
        self._aggregator = aggregator
        self._fence = fence
        self._metrics = metrics
        self._read = read
        self._started, self._read_before = time.monotonic(), 0
        self._restoring: asyncio.Task[Any] | None = None
        self._together = asyncio.Semaphore(TOGETHER)

    def assigned(self) -> Part:
        """For readyz: the partitions that are worked on, or how far their tables are read.

        `svc up` waits while this changes.
        """
        held = sorted(self._grouper.partitions)
        if self._fence.open:
            return Part(ok=True, detail=f"partitions {held}")
        read = self._read() - self._read_before
        return Part(ok=False, detail=f"recovering: {read:,} table records read, partitions {held} restored")

    async def begin(self, assigned: set[TP]) -> None:
        """The group has assigned partitions: tables are about to be read.

        The stages drop revoked partitions, because these may return changed. Faust leaves the end of an
        earlier recovery running: it would restore its records during the next one.
        """
        if self._restoring is not None:
            self._restoring.cancel()
            await asyncio.wait([self._restoring])
        active = {tp.partition for tp in assigned if tp.topic == self._events}
        for stage in (self._grouper, self._aggregator):
            for partition in stage.partitions - active:
                stage.drop(partition)
        self._started, self._read_before = time.monotonic(), self._read()
        self._grouper.assigned_at = self._started
        self._metrics.recovering.set(1)

    async def restore(self, consumer: Any, partitions: set[int]) -> None:
        """Restore new partitions. Raises LogTooShort and IssuesLost, and the errors of the grouper's `restore`."""
        self._restoring = asyncio.current_task()
        try:
            await self._restore(consumer, partitions)
        finally:
            self._restoring = None

    async def _restore(self, consumer: Any, partitions: set[int]) -> None:
        new = sorted(partitions - self._grouper.partitions)
        sources = [TP(topic, p) for p in new for topic in (self._events, self._deltas)]
        # Each waits for the fetch that is under way.
        starts, ends = await asyncio.gather(
            consumer.earliest_offsets(*sources), consumer.highwaters(*sources)
        )
        # Millions of records are decoded: none is garbage, and each collection would look at all.
        gc.disable()
        try:
            restored = [self._restore_partition(consumer, partition, starts, ends) for partition in new]
            ids = sum(await asyncio.gather(*restored))
        finally:
            gc.enable()
        gc.freeze()
        seconds, read = time.monotonic() - self._started, self._read() - self._read_before
        self._metrics.recovering.set(0)
        log.info(
            "recovered in %.2f s: partitions %s, %d table records read, %d ids restored",
            seconds,
            sorted(partitions),
            read,
            ids,
            extra={"event": "partitions_recovered"},
        )

    async def _restore_partition(self, consumer: Any, partition: int, starts: Offsets, ends: Offsets) -> int:
        """Restore both stages, or none of them; how many ids."""
        events, deltas = TP(self._events, partition), TP(self._deltas, partition)
        try:
            async with self._together:
                ids = await self._restore_grouper(consumer, events, starts[events] or 0, ends[events] or 0)
        except asyncio.CancelledError:
            self._grouper.drop(partition)
            raise
        if not self._aggregator.restore(partition, starts[deltas] or 0):
            log.warning(
                "issues of partition %d are incomplete: replaying the log from its start",
                partition,
                extra={"event": "issues_incomplete"},
            )
        for tp, next_offset in self.next_offsets({events, deltas}).items():
            if next_offset > (ends[tp] or 0):
                raise LogTooShort(
                    f"{tp.topic}/{tp.partition} ends at {ends[tp]}, but {next_offset} is the next offset"
                )
        return ids

    async def _restore_grouper(self, consumer: Any, events: TP, start: int, end: int) -> int:
        """Restore the grouper; returns how many ids.

        The earlier owner of the partition may have published records that came after its end was read.
        """
        while True:
            try:
                return await self._grouper.restore(events.partition, start, end)
            except LogRecreated:
                newer = (await consumer.highwaters(events))[events] or 0
                if newer <= end:
                    raise
                end = newer

    def next_offsets(self, assigned: set[TP]) -> dict[TP, int]:
        """The next offsets of the source partitions that are restored."""
        offsets = {}
        for tp in assigned:
            offset = None
            if tp.topic == self._events:
                offset = self._grouper.next_offset(tp.partition)
            elif tp.topic == self._deltas:
                offset = self._aggregator.next_offset(tp.partition)
            if offset is not None:
                offsets[tp] = offset
        return offsets
