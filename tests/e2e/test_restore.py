"""Kafka and ClickHouse restored from backups of different moments, as docs/operate/maintain.md says."""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from rich.console import Console

import bench.chaos.__main__ as chaos
from bench.chaos import proof
from bench.chaos.chaos_load import Load
from bench.report import Claim
from bench.servers import prepare
from cli.demo.demo_command import edge_knows
from cli.demo.sample_events import load_samples
from cli.projects import CreatedProject, create_project
from cli.send.batch_sender import Sender
from cli.send.send_batches import batches
from local.kafka.local_kafka import LocalKafka
from local.local_stack import Stack
from schemas.environment import load
from schemas.settings import MigrateSettings
from tests.backed_up_clickhouse import BackedUpClickHouse
from tests.eventually import eventually
from tests.recorded.record import started, svc
from tests.servers import CACHE

pytestmark = pytest.mark.slow

EVENTS = 400
FLUSHED_SECONDS = 30


@asynccontextmanager
async def running(stack: Stack, *without: str) -> AsyncIterator[MigrateSettings]:
    """Our processes, but for some."""
    supervisor = await started(stack, *without)
    try:
        yield load(MigrateSettings, stack.environ)
    finally:
        await supervisor.stop()


class Sending:
    """A client, and the ids that were accepted."""

    def __init__(self, project: CreatedProject) -> None:
        self.project = project
        self.load = Load(load_samples(), 1, 0.0)
        self.accepted = 0

    async def send(self, stack: Stack, lines: Iterable[bytes]) -> None:
        sender = Sender(stack.ingest_url, self.project.token, sdk="restore/1", retry_for=60)
        await sender.send(batches(lines))
        assert not sender.report.problems
        self.accepted += sender.report.accepted


async def at_rest(stack: Stack, settings: MigrateSettings, sending: Sending) -> list[Claim]:
    """The failed claims once everything is stored; an edge reports its accepted events every few seconds."""
    store = await chaos.drained(Console(quiet=True), settings, len(sending.load.ids), chaos.groups_of(stack))
    assert store is not None
    end = time.monotonic() + FLUSHED_SECONDS
    try:
        while True:
            claims = await asyncio.to_thread(proof.claims, store, sending.load.ids, sending.accepted)
            created = store.number("SELECT uniqExact(issue_id) FROM issue_activity WHERE kind = 'created'")
            claims.append(Claim("new issues told", store.number("SELECT count() FROM issues FINAL"), created))
            wrong = [claim for claim in claims if not claim.holds]
            if not wrong or time.monotonic() > end:
                return wrong
            await asyncio.sleep(0.5)
    finally:
        store.close()


async def test_counts_are_exact_after_backups_of_different_moments(
    tmp_path: Path, own_kafka: LocalKafka, own_clickhouse: BackedUpClickHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chaos, "SETTLED_SECONDS", 1)
    servers = {"SVC_KAFKA_BOOTSTRAP": own_kafka.bootstrap, "SVC_CLICKHOUSE_URL": own_clickhouse.url()}
    stack = prepare(tmp_path / "stack", CACHE, **servers)
    async with running(stack) as settings:
        sending = Sending(await create_project(settings, "restore", rate_limit=1_000_000))
        await eventually(lambda: edge_knows(stack, sending.project))
        await sending.send(stack, sending.load.events(EVENTS))
        assert await at_rest(stack, settings, sending) == []
    own_kafka.stop()
    shutil.copytree(own_kafka.directory, tmp_path / "copy")
    own_kafka.start(120)
    later = [*sending.load.events(EVENTS)]
    async with running(stack):
        # Tables are backed up one after the other, while events are stored.
        arriving = asyncio.create_task(sending.send(stack, later[: EVENTS // 2]))
        await asyncio.to_thread(own_clickhouse.sql, f"BACKUP DATABASE svc TO {own_clickhouse.backup('one')}")
        await arriving
        await sending.send(stack, later[EVENTS // 2 :])
        minute = time.time() // 60
        assert await at_rest(stack, settings, sending) == []

    # ClickHouse is older than Kafka: the topics still have its missing rows.
    own_clickhouse.sql("DROP DATABASE svc SYNC")
    own_clickhouse.sql(f"RESTORE DATABASE svc FROM {own_clickhouse.backup('one')}")
    await svc(stack, "migrate", "--moved")
    async with running(stack):
        await svc(stack, "reconcile", "--repair", "--wait", "60")
        assert await at_rest(stack, settings, sending) == []

    # Kafka is older than ClickHouse: it knows neither the later ids nor the later states of their issues.
    own_kafka.stop()
    shutil.rmtree(own_kafka.directory)
    shutil.copytree(tmp_path / "copy", own_kafka.directory)
    own_kafka.start(120)
    async with running(stack, "edge", "processors"):
        await svc(stack, "rebuild", "all", "--from", "clickhouse", "--yes")
    async with running(stack):
        # Outcomes have a minute and a position, and the positions of the lost records are given out again.
        await eventually(lambda: time.time() // 60 > minute, 61)
        await sending.send(stack, later)
        await sending.send(stack, sending.load.events(EVENTS))
        assert await at_rest(stack, settings, sending) == []
