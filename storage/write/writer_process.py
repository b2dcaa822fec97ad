"""The writer's process: builds its parts and runs them."""

import asyncio
import gc
import signal
from typing import Final

from broker.client import follow_projects
from broker.rights import needs
from broker.startup import wait_for_rights
from broker.waiting import until
from schemas.health import Health
from schemas.projects import ProjectRegistry
from schemas.settings import WriterSettings
from storage.rights import ClickHouseRights, writer_rights
from storage.server_identity import ServerCheck
from storage.shards import Shard, shards_of
from storage.write.block_inserter import BlockInserter
from storage.write.events_stage import EventsStage
from storage.write.flush_policy import FlushPolicy
from storage.write.housekeeping import run_housekeeping, write_projects
from storage.write.inserter import Inserter
from storage.write.records_stage import RecordsStage
from storage.write.rejected_records import DeadLetterWriter
from storage.write.running_audit import run_audit
from storage.write.source import GroupedSource
from storage.write.writer_metrics import WriterMetrics

_BLOCK_BYTES: Final = 32 * 1024 * 1024
_GC_THRESHOLDS: Final = (50_000, 20, 50)


class ShardInserters:
    """The inserters of one server, with a connection for each kind of work."""

    def __init__(self, shard: Shard, health: Health, metrics: WriterMetrics) -> None:
        self.shard = shard
        check = ServerCheck(shard)
        self.events, self.issues, self.projects, self.retention = (
            Inserter(shard.url, shard.named(part), health, metrics, check)
            for part in ("events", "issues", "projects", "retention")
        )

    def close(self) -> None:
        for inserter in (self.events, self.issues, self.projects, self.retention):
            inserter.close()


async def run_writer(settings: WriterSettings, health: Health, metrics: WriterMetrics) -> None:
    """Write until SIGTERM or SIGINT.

    Raises CannotRun, and errors other than Kafka or ClickHouse being unavailable.
    """
    # Tens of thousands of objects a second live until their block is inserted: they are collected rarely,
    # modules never.
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    health.set("registry", ok=False, detail="reading the projects")
    registry = ProjectRegistry()
    policy = FlushPolicy(
        block_rows=settings.writer_block_rows,
        block_bytes=_BLOCK_BYTES,
        quiet_seconds=settings.writer_quiet_seconds,
        wait_seconds=settings.writer_wait_seconds,
    )
    dead_letters = DeadLetterWriter(settings, metrics)
    source = GroupedSource(settings)
    shards = [ShardInserters(shard, health, metrics) for shard in shards_of(settings)]
    for one in shards:
        health.set(one.shard.named("retention"), ok=False, detail="asking ClickHouse")
    block_inserters = [
        (one.shard, BlockInserter(one.events, dead_letters, source.topic, metrics)) for one in shards
    ]
    events = EventsStage(source, block_inserters, policy, health, metrics)
    records = [
        RecordsStage(settings, one.shard, one.issues, dead_letters, policy, health, metrics) for one in shards
    ]
    follower = follow_projects(settings, registry)
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    health.probe("kafka", follower.answering)
    health.probe("name", source.name.part)
    required = needs(settings)["writer"]
    stored_rights = ClickHouseRights(settings.shard_urls, writer_rights, spread=len(shards) > 1)
    try:
        await until(stopping, wait_for_rights(settings, required, stored_rights, health=health))
        if stopping.is_set():
            return
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(follower.run())
            await until(stopping, follower.loaded.wait())
            health.set("registry", ok=True)
            background = [tasks.create_task(run_audit(settings, metrics, lambda: events.writes(0)))]
            for one in shards:
                background.append(tasks.create_task(write_projects(registry, one.projects)))
                background.append(tasks.create_task(run_housekeeping(one.retention, metrics)))
            stages: list[EventsStage | RecordsStage] = [events, *records]
            writing = [tasks.create_task(stage.run()) for stage in stages]
            await stopping.wait()
            for stage in stages:
                stage.stop()
            await asyncio.wait(writing)
            for task in (*background, following):
                task.cancel()
    finally:
        await dead_letters.close()
        for one in shards:
            one.close()
