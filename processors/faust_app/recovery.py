"""Taking up partitions after a recovery: where our own records end is where reading goes on."""

import asyncio
import gc
import logging
import time
from collections.abc import Callable
from typing import Any

from faust.types import TP

from processors.aggregator.stage import AggregatorStage
from processors.faust_app.fence import RebalanceFence
from processors.grouper.stage import GrouperStage
from processors.metrics import ProcessorsMetrics
from processors.topic_names import TopicNames

log = logging.getLogger(__name__)


class LogTooShort(Exception):
    """A source topic ends before what was processed of it: it was made anew, and its records would pass for repeats."""


class Recovery:
    """Restores both workers from their tables. `read` counts the records of tables that were taken over so far."""

    def __init__(
        self,
        names: TopicNames,
        grouper: GrouperStage,
        aggregator: AggregatorStage,
        gate: RebalanceFence,
        metrics: ProcessorsMetrics,
        read: Callable[[], int],
    ) -> None:
        self._names = names
        self._grouper = grouper
        self._aggregator = aggregator
        self._gate = gate
        self._metrics = metrics
        self._read = read
        self._started, self._read_before = time.monotonic(), 0

    async def begin(self, assigned: set[TP]) -> None:
        """The group has assigned partitions: tables are about to be read.

        What is kept in reserve is none of the workers' business, and a partition that left may come back changed.
        """
        active = {tp.partition for tp in assigned if tp.topic == self._names.events}
        for worker in (self._grouper, self._aggregator):
            for partition in worker.partitions - active:
                worker.drop(partition)
        self._started, self._read_before = time.monotonic(), self._read()
        self._metrics.rebalances.inc()
        self._metrics.recovering.set(1)

    async def revoke(self, seconds: float) -> None:
        """Partitions are about to change hands: finish what was begun and begin nothing more. Raises TimeoutError."""
        await self._gate.close(seconds)

    async def restore(self, consumer: Any, partitions: set[int]) -> None:
        """Take up new partitions. Raises LogTooShort and IssuesLost, and what the grouper raises."""
        fresh = sorted(partitions - self._grouper.partitions)
        sources = [TP(topic, p) for p in fresh for topic in (self._names.events, self._names.deltas)]
        starts = await consumer.earliest_offsets(*sources)
        ends = await consumer.highwaters(*sources)
        ids = 0
        for partition in fresh:
            events, deltas = TP(self._names.events, partition), TP(self._names.deltas, partition)
            ids += await self._grouper.restore(partition, starts[events] or 0, ends[events] or 0)
            await asyncio.sleep(0)
            if not self._aggregator.restore(partition, starts[deltas] or 0):
                log.warning(
                    "issues of partition %d are not whole: folding again from the log's start", partition
                )
            for tp, new_records in self.places({events, deltas}).items():
                if new_records > (ends[tp] or 0):
                    raise LogTooShort(
                        f"{tp.topic}/{tp.partition} ends at {ends[tp]}, but {new_records} is due"
                    )
        gc.freeze()
        seconds, read = time.monotonic() - self._started, self._read() - self._read_before
        self._metrics.recovering.set(0)
        self._metrics.recovery_seconds.set(seconds)
        self._metrics.recovery_records.set(read)
        log.info(
            "recovered in %.2f s: partitions %s, %d records of tables read, %d ids taken up",
            seconds,
            sorted(partitions),
            read,
            ids,
        )

    def places(self, assigned: set[TP]) -> dict[TP, int]:
        """The offsets that are due in the source partitions that are held."""
        found = {}
        for tp in assigned:
            new_records = None
            if tp.topic == self._names.events:
                new_records = self._grouper.next_offset(tp.partition)
            elif tp.topic == self._names.deltas:
                new_records = self._aggregator.next_offset(tp.partition)
            if new_records is not None:
                found[tp] = new_records
        return found
