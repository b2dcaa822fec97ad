"""A group's client that doesn't get on is replaced, and its block is written once."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import patch

from aiokafka.errors import GroupAuthorizationFailedError
from prometheus_client import CollectorRegistry

from broker.types import Record
from schemas.health import Health
from storage.exactly_once.source_values import SourceValues
from storage.shards import only
from storage.write.block_inserter import BlockInserter
from storage.write.events_stage import EventsStage
from storage.write.flush_policy import FlushPolicy
from storage.write.inserter import Inserter
from storage.write.rejected_records import DeadLetterWriter
from storage.write.source import GroupedSource, Listener
from storage.write.writer_metrics import WriterMetrics
from tests.integration.storage.grouped import Stage, counts, exactly, whole


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


class Mute(GroupedSource):
    """The sources of the first partition that it reads don't come, until another partition is stored."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage.settings)
        self.starts = 1
        self.refused = 0
        self._stage = stage
        self._mute = -1

    @asynccontextmanager
    async def source_values(self, partitions: Iterable[int]) -> AsyncIterator[SourceValues]:
        async with super().source_values(partitions) as sources:
            deliver = sources.delivered

            async def delivered(records: Sequence[Record]) -> list[bytes | None] | None:
                self._mute = records[0].partition if self._mute < 0 else self._mute
                if records[0].partition == self._mute and not self._is_another_stored():
                    self.refused += 1
                    return None
                return await deliver(records)

            with patch.object(sources, "delivered", delivered):
                yield sources

    def _is_another_stored(self) -> bool:
        client = self._stage.client()
        try:
            return counts(client)["events"] > 0
        finally:
            client.close()


async def _written(stage: Stage, source: Stalling | Failing | Mute) -> int:
    health, metrics = Health(), WriterMetrics(CollectorRegistry())
    policy = FlushPolicy(block_rows=2_000, block_bytes=1 << 26, quiet_seconds=0.1, wait_seconds=0.3)
    letters = DeadLetterWriter(stage.settings, metrics)
    inserter = Inserter(stage.settings.clickhouse_url, "events", health, metrics)
    delivery = BlockInserter(inserter, letters, source.topic, metrics)
    writer = EventsStage(source, [(only("")[0], delivery)], policy, health, metrics)
    running = asyncio.create_task(writer.run())
    await stage.produce(24)
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


async def test_a_partition_whose_sources_do_not_come_holds_up_no_other_and_is_written_once(
    stage: Stage,
) -> None:
    source = Mute(stage)
    assert await _written(stage, source) == 1
    assert source.refused
