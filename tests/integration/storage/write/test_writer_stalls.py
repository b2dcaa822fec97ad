"""A group's client that doesn't get on is replaced, and its block is written once."""

import asyncio
from typing import Any

from aiokafka.errors import GroupAuthorizationFailedError
from prometheus_client import CollectorRegistry

from schemas.health import Health
from storage.shards import only
from storage.write.block_inserter import BlockInserter
from storage.write.events_stage import EventsStage
from storage.write.flush_policy import FlushPolicy
from storage.write.inserter import Inserter
from storage.write.rejected_records import DeadLetterWriter
from storage.write.source import GroupedSource, Listener
from storage.write.writer_metrics import WriterMetrics
from tests.integration.storage.grouped import Stage, exactly, whole


class Stalling(GroupedSource):
    """Its first client never gets an answer to the commits from `from_commit` on."""

    def __init__(self, stage: Stage, from_commit: int) -> None:
        super().__init__(stage.settings, commit_seconds=1.0)
        self.starts = 0
        self._answered = from_commit

    async def start(self, listener: Listener) -> None:
        await super().start(listener)
        self.starts += 1
        if self.starts > 1:
            return
        commit = self._consumer.commit

        async def stalling(offsets: Any) -> None:
            if not self._answered:
                await asyncio.Event().wait()
            self._answered -= 1
            await commit(offsets)

        self._consumer.commit = stalling


class Failing(GroupedSource):
    """Every read of its first client raises, as with a heartbeat that ended for good."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage.settings)
        self.starts = 0

    async def start(self, listener: Listener) -> None:
        await super().start(listener)
        self.starts += 1
        if self.starts == 1:
            self._consumer._coordinator.check_errors = self._fail

    def _fail(self) -> None:
        raise GroupAuthorizationFailedError("writer")


async def _written(stage: Stage, source: Stalling | Failing) -> int:
    health, metrics = Health(), WriterMetrics(CollectorRegistry())
    policy = FlushPolicy(block_rows=2_000, block_bytes=1 << 26, quiet_seconds=0.1, wait_seconds=0.3)
    letters = DeadLetterWriter(stage.settings, metrics)
    inserter = Inserter(stage.settings.clickhouse_url, "events", health, metrics)
    delivery = BlockInserter(inserter, letters, source.topic, metrics)
    writer = EventsStage(source, [(only("")[0], delivery)], policy, health, metrics)
    running = asyncio.create_task(writer.run())
    await stage.produce(12)
    found = await whole(stage)
    writer.stop()
    await running
    await letters.close()
    inserter.close()
    assert found == exactly(stage.total)
    return source.starts


async def test_a_plan_that_is_never_taken_is_made_again_by_a_new_client(stage: Stage) -> None:
    assert await _written(stage, Stalling(stage, 0)) == 2


async def test_a_block_whose_end_is_never_committed_is_there_once(stage: Stage) -> None:
    assert await _written(stage, Stalling(stage, 1)) == 2


async def test_a_client_whose_every_read_fails_is_replaced(stage: Stage) -> None:
    assert await _written(stage, Failing(stage)) == 2
