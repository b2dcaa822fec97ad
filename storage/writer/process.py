"""The writer's parts put together and run."""

import asyncio
import gc
import logging
import signal
from typing import Final

from broker.client import follow_projects
from broker.rights import needs
from broker.startup import check_rights
from broker.waiting import until
from schemas.health import Health
from schemas.projects import ProjectRegistry
from schemas.settings import WriterSettings
from storage.writer.dead_letters import DeadLetterWriter
from storage.writer.flush_policy import FlushPolicy
from storage.writer.housekeeping import run_housekeeping
from storage.writer.insert_block import BlockInserter
from storage.writer.inserter import Inserter
from storage.writer.metrics import WriterMetrics
from storage.writer.projects import RegistryRetention, write_projects
from storage.writer.records_stage import RecordsStage
from storage.writer.source import GroupedSource
from storage.writer.stage import EventsStage

log = logging.getLogger(__name__)

_BLOCK_BYTES: Final = 64 * 1024 * 1024
_GC_THRESHOLDS: Final = (50_000, 20, 50)


async def run(settings: WriterSettings, health: Health, metrics: WriterMetrics) -> None:
    """Write until SIGTERM or SIGINT. Raises CannotRun, and what is neither Kafka's nor ClickHouse's absence."""
    # Tens of thousands of objects a second live until their block is inserted: looked through seldom, and modules never.
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    health.set("registry", ok=False, detail="reading the projects")
    health.set("retention", ok=False, detail="asking ClickHouse")
    registry = ProjectRegistry()
    pace = FlushPolicy(
        block_rows=settings.writer_block_rows,
        block_bytes=_BLOCK_BYTES,
        quiet_seconds=settings.writer_quiet_seconds,
        wait_seconds=settings.writer_wait_seconds,
    )
    inserters = [
        Inserter(settings.clickhouse_url, part, health, metrics)
        for part in ("events", "issues", "projects", "retention")
    ]
    letters = DeadLetterWriter(settings, metrics)
    source = GroupedSource(settings)
    delivery = BlockInserter(inserters[0], letters, source.topic, metrics)
    events = EventsStage(source, delivery, RegistryRetention(registry), pace, health, metrics)
    records = RecordsStage(settings, inserters[1], letters, pace, health, metrics)
    follower = follow_projects(settings, registry)
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    health.probe("kafka", follower.answering)
    need = needs("", settings.writer_group, grouped_events=False)["writer"]
    try:
        await until(stopping, check_rights(settings, need))
        if stopping.is_set():
            return
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(follower.run())
            await until(stopping, follower.loaded.wait())
            health.set("registry", ok=True)
            chores = [
                tasks.create_task(write_projects(registry, inserters[2])),
                tasks.create_task(run_housekeeping(inserters[3], metrics)),
            ]
            writing = [tasks.create_task(events.run()), tasks.create_task(records.run())]
            await stopping.wait()
            events.stop()
            records.stop()
            await asyncio.wait(writing)
            for task in (*chores, following):
                task.cancel()
    finally:
        await letters.close()
        for inserter in inserters:
            inserter.close()
