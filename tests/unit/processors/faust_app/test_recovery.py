"""After a recovery of the tables each new partition is restored once, and reading continues where its stages say."""

import asyncio
import gc
from typing import Any, cast

import pytest
from faust.types import TP
from prometheus_client import CollectorRegistry

from broker.client import topic_names
from processors.aggregator.aggregator_stage import AggregatorStage
from processors.faust_app.fence import RebalanceFence
from processors.faust_app.recovery import LogTooShort, Recovery
from processors.grouper.grouper_stage import GrouperStage
from processors.positions import LogRecreated
from processors.processors_metrics import ProcessorsMetrics
from schemas.environment import load
from schemas.health import Part
from schemas.settings import ProcessorsSettings
from schemas.topics import Topic
from tests.eventually import eventually

NAMES = topic_names(load(ProcessorsSettings, {}))
ENDS = 100


class Stage:
    """A stage that restores a partition to the offset `at`, and remembers the requests."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.partitions: set[int] = set()
        self.restored: list[tuple[int, ...]] = []
        self.dropped: list[int] = []

    async def restore(self, partition: int, *bounds: int) -> int:
        self.partitions.add(partition)
        self.restored.append((partition, *bounds))
        return 7

    def drop(self, partition: int) -> None:
        self.partitions.discard(partition)
        self.dropped.append(partition)

    def next_offset(self, partition: int) -> int | None:
        return self.at if partition in self.partitions else None


class SyncStage(Stage):
    """As the aggregator, whose restoring waits for nothing."""

    def restore(self, partition: int, *bounds: int) -> Any:
        self.partitions.add(partition)
        self.restored.append((partition, *bounds))
        return True


class Consumer:
    """Every partition begins at 5 and ends at 100."""

    async def earliest_offsets(self, *tps: TP) -> dict[TP, int | None]:
        return dict.fromkeys(tps, 5)

    async def highwaters(self, *tps: TP) -> dict[TP, int | None]:
        return dict.fromkeys(tps, ENDS)


def made(grouper: Stage, aggregator: Stage) -> tuple[Recovery, CollectorRegistry]:
    registry = CollectorRegistry()
    recovery = Recovery(
        NAMES,
        cast(GrouperStage, grouper),
        cast(AggregatorStage, aggregator),
        RebalanceFence(),
        ProcessorsMetrics(registry),
        lambda: 12,
    )
    return recovery, registry


async def test_each_new_partition_is_restored_once_and_read_on_from_its_next_offset() -> None:
    grouper, aggregator = Stage(40), SyncStage(60)
    recovery, registry = made(grouper, aggregator)
    await recovery.restore(Consumer(), {0, 1})
    await recovery.restore(Consumer(), {0, 1, 2})
    assert grouper.restored == [(0, 5, ENDS), (1, 5, ENDS), (2, 5, ENDS)]
    assert aggregator.restored == [(0, 5), (1, 5), (2, 5)]
    assigned = {
        TP(NAMES[Topic.EVENTS], 0),
        TP(NAMES[Topic.ISSUE_DELTAS], 0),
        TP(NAMES[Topic.EVENTS], 3),
        TP("other", 0),
    }
    assert recovery.next_offsets(assigned) == {
        TP(NAMES[Topic.EVENTS], 0): 40,
        TP(NAMES[Topic.ISSUE_DELTAS], 0): 60,
    }
    assert registry.get_sample_value("svc_processors_recovering") == 0


@pytest.mark.parametrize(
    ("grouper", "aggregator", "topic"),
    [(ENDS + 1, 0, NAMES[Topic.EVENTS]), (0, ENDS + 1, NAMES[Topic.ISSUE_DELTAS])],
)
async def test_a_topic_that_ends_before_the_next_offset_stops_the_worker(
    grouper: int, aggregator: int, topic: str
) -> None:
    recovery, _ = made(Stage(grouper), SyncStage(aggregator))
    with pytest.raises(LogTooShort, match=f"{topic}/0 ends at {ENDS}, but {ENDS + 1} is the next offset"):
        await recovery.restore(Consumer(), {0})


async def test_a_topic_that_ends_at_the_next_offset_has_been_read_whole() -> None:
    recovery, _ = made(Stage(ENDS), SyncStage(ENDS))
    await recovery.restore(Consumer(), {0})


async def test_revoked_partitions_are_dropped_before_tables_are_read() -> None:
    grouper, aggregator = Stage(1), SyncStage(1)
    recovery, registry = made(grouper, aggregator)
    await recovery.restore(Consumer(), {0, 1})
    await recovery.begin({TP(NAMES[Topic.EVENTS], 1), TP(NAMES[Topic.ISSUE_DELTAS], 1)})
    assert (grouper.dropped, aggregator.dropped) == ([0], [0])
    assert registry.get_sample_value("svc_processors_recovering") == 1


async def test_a_recovery_tells_how_far_it_is() -> None:
    recovery, _ = made(Stage(40), SyncStage(60))
    assert recovery.assigned() == Part(False, "recovering: 12 table records read, partitions [] restored")
    await recovery.restore(Consumer(), {0, 1})
    assert recovery.assigned().detail == "recovering: 12 table records read, partitions [0, 1] restored"
    recovery._fence.open = True
    assert recovery.assigned() == Part(True, "partitions [0, 1]")


async def test_a_restoring_that_a_rebalance_overtakes_is_given_up_and_done_again() -> None:
    grouper, aggregator = Stage(40), SyncStage(60)
    recovery, _ = made(grouper, aggregator)
    held = asyncio.Event()
    restore = grouper.restore

    async def waits(partition: int, *bounds: int) -> int:
        await restore(partition, *bounds)
        if partition == 1:
            await held.wait()
        return 7

    grouper.restore = waits  # type: ignore[method-assign]
    overtaken = asyncio.create_task(recovery.restore(Consumer(), {0, 1, 2}))
    await eventually(lambda: aggregator.partitions == {0, 2})
    await recovery.begin({TP(NAMES[Topic.EVENTS], 1), TP(NAMES[Topic.EVENTS], 2)})
    assert overtaken.cancelled()
    assert grouper.partitions == aggregator.partitions == {2}
    held.set()
    await recovery.restore(Consumer(), {1, 2})
    assert grouper.partitions == aggregator.partitions == {1, 2}


async def test_two_partitions_are_restored_at_the_same_time_and_without_collections_of_garbage() -> None:
    grouper, aggregator = Stage(40), SyncStage(60)
    recovery, _ = made(grouper, aggregator)
    begun: list[int] = []
    proceed = asyncio.Event()

    async def waits(partition: int, *_: int) -> int:
        begun.append(partition)
        await proceed.wait()
        assert not gc.isenabled()
        grouper.partitions.add(partition)
        return 7

    grouper.restore = waits  # type: ignore[method-assign]
    restoring = asyncio.create_task(recovery.restore(Consumer(), {0, 1, 2}))
    await eventually(lambda: begun == [0, 1])
    proceed.set()
    await restoring
    assert begun == [0, 1, 2]
    assert gc.isenabled()


async def test_a_log_that_grew_while_its_partition_is_restored_is_not_taken_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grouper, aggregator, consumer = Stage(40), SyncStage(60), Consumer()
    recovery, _ = made(grouper, aggregator)
    restore, ends = grouper.restore, iter([ENDS, ENDS + 1, ENDS + 2])

    async def published(partition: int, start: int, end: int) -> int:
        if end < ENDS + 2:
            raise LogRecreated("grouped has a later record")
        return await restore(partition, start, end)

    async def highwaters(*tps: TP) -> dict[TP, int | None]:
        return dict.fromkeys(tps, next(ends, ENDS + 2))

    monkeypatch.setattr(grouper, "restore", published)
    monkeypatch.setattr(consumer, "highwaters", highwaters)
    await recovery.restore(consumer, {0})
    assert grouper.restored == [(0, 5, ENDS + 2)]
    with pytest.raises(LogRecreated):
        await made(grouper, aggregator)[0].restore(Consumer(), {1})
