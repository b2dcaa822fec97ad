"""The events' stage at a rebalance: the block in progress is finished before the group is joined again."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

from broker.errors import CommitFailedError
from broker.types import TopicPartition
from schemas.health import Health
from schemas.projects import ProjectRegistry, RegistryRetention
from schemas.settings import WriterSettings, load
from storage.writer.blocks import BlockManifest, NoBlock
from storage.writer.inserter import BlockInserter, FlushPolicy, LastFlush
from storage.writer.metrics import WriterMetrics
from storage.writer.source import GroupedSource, Listener
from storage.writer.stage import EventsStage
from storage.writer.tokens import ServerMark
from tests.unit.storage.writer.test_blocks import Record


class Source:
    """One partition with one record that can't be decoded."""

    topic = "grouped"

    def __init__(self) -> None:
        self.commits: list[tuple[int, BlockManifest | NoBlock]] = []
        self._records = [Record(0, b"no chunk")]

    async def start(self, listener: Listener) -> None:
        self.listener = listener

    async def stop(self) -> None:
        pass

    async def committed(self, partitions: set[int]) -> Mapping[int, Any]:  # noqa: ARG002
        return {}

    async def bounds(self, partitions: set[int]) -> Mapping[int, tuple[int, int]]:
        return dict.fromkeys(partitions, (0, 1))

    def seek(self, partition: int, offset: int) -> None:
        pass

    async def read(self, timeout: float, limit: int) -> Mapping[int, list[Record]]:  # noqa: ARG002
        await asyncio.sleep(0)
        records, self._records = self._records, []
        return {0: records} if records else {}

    async def commit(self, states: Mapping[int, tuple[int, BlockManifest | NoBlock]]) -> None:
        self.commits.append(states[0])


class Delivery:
    """Inserts a block once `answered` is set."""

    def __init__(self) -> None:
        self.last = LastFlush()
        self.begun, self.answered = asyncio.Event(), asyncio.Event()

    async def has_rows(self) -> bool:
        return False

    async def mark(self) -> ServerMark:
        return ServerMark(1, (0,), 1)

    async def deliver(self, *_: object) -> None:
        self.begun.set()
        await self.answered.wait()


@asynccontextmanager
async def inserting(source: Source, delivery: Delivery) -> AsyncIterator[None]:
    """A stage whose first block is being inserted."""
    policy = FlushPolicy(block_rows=1, block_bytes=1, quiet_seconds=0.0, wait_seconds=0.0)
    stage = EventsStage(
        cast(GroupedSource, source),
        cast(BlockInserter, delivery),
        RegistryRetention(ProjectRegistry()),
        policy,
        Health(),
        WriterMetrics(CollectorRegistry()),
    )
    running = asyncio.create_task(stage.run())
    try:
        while not hasattr(source, "listener"):
            await asyncio.sleep(0)
        await source.listener.on_partitions_assigned({TopicPartition("grouped", 0)})
        await delivery.begun.wait()
        yield
    finally:
        stage.stop()
        await running


async def test_a_block_in_progress_is_committed_before_the_group_is_joined_again() -> None:
    source, delivery = Source(), Delivery()
    async with inserting(source, delivery):
        revoking = asyncio.create_task(source.listener.on_partitions_revoked(set()))
        await asyncio.sleep(0)
        delivery.answered.set()
        await revoking
        assert [offset for offset, _ in source.commits] == [0, 1]
        assert source.commits[1] == (1, NoBlock())


async def test_a_block_that_takes_too_long_is_left_to_the_next_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.writer.stage._STOP_SECONDS", 0.01)
    source, delivery = Source(), Delivery()
    async with inserting(source, delivery):
        await source.listener.on_partitions_revoked(set())
        delivery.answered.set()
        await asyncio.sleep(0)
        (commit,) = source.commits
        assert isinstance(commit[1], BlockManifest)


async def test_a_member_that_the_group_has_expelled_commits_nothing() -> None:
    source = GroupedSource(load(WriterSettings, {}))
    source._started = SimpleNamespace(_coordinator=SimpleNamespace(generation=-1))
    with pytest.raises(CommitFailedError):
        await source.commit({0: (1, NoBlock())})
