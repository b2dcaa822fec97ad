"""A part whose files are empty, as a full disk leaves them, is noticed when the server starts.

Its rows are restored.
"""

import asyncio
from pathlib import Path

import pytest

from broker.client import open_consumer, open_producer
from broker.types import TopicPartition
from cli.doctor.basic_checks import Finding
from cli.doctor.damage_check import check_damage
from local.clickhouse.local_clickhouse import LocalClickHouse
from schemas.environment import load
from schemas.settings import MigrateSettings
from storage.client import scalar
from storage.maintain.audit.damage import broken_parts, without_issue
from tests.eventually import eventually
from tests.integration.cli.test_reconcile import reconcile, tell_outcomes_and_issues
from tests.integration.storage.grouped import Stage, counts, ended, exactly, whole

TABLES = ("issues", "outcomes")


def empty(folders: list[str]) -> None:
    """Leave every file of the parts without a byte."""
    for folder in folders:
        for file in Path(folder).iterdir():
            file.write_bytes(b"")


async def check(stage: Stage) -> list[Finding]:
    """Findings of `svc doctor` on the stored rows, without waiting for the pipeline."""
    settings = load(MigrateSettings, stage.environ)
    return await asyncio.to_thread(check_damage, settings, 0)


async def issues_on_their_way_are_not_lost(stage: Stage) -> None:
    """Events are stored, some of them with times of days ago, and their increments are not read yet: then they are."""
    deltas = TopicPartition(f"{stage.settings.topic_prefix}issue-deltas", 0)
    async with open_producer(stage.settings) as producer:
        await producer.send_and_wait(deltas.topic, b"{}", partition=deltas.partition)
    [waiting] = await check(stage)
    assert waiting.ok
    assert "1 records of" in waiting.message
    options = {"group_id": stage.settings.processors_app, "enable_auto_commit": False}
    async with open_consumer(stage.settings, **options) as processors:
        processors.assign([deltas])
        await processors.commit({deltas: 1})
    [lost] = await check(stage)
    assert (lost.ok, lost.message) == (False, "10 fingerprints have events and no issue")


@pytest.mark.slow
async def test_parts_with_empty_files_are_reported_and_their_rows_repaired(
    kafka_bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    server = await asyncio.to_thread(LocalClickHouse(tmp_path / "clickhouse").start)
    try:
        stage = await Stage(kafka_bootstrap, server.url(), topic_prefix, tmp_path).prepare()
        await stage.produce(3)
        writer = stage.writer()
        with ended(writer):
            await whole(stage)
            await issues_on_their_way_are_not_lost(stage)
            await tell_outcomes_and_issues(stage)
            settled = await reconcile(stage, tmp_path)
            assert settled.exit_code == 0, settled.output
        client = stage.client()
        issues = scalar(client, "SELECT count() FROM issues FINAL")
        [intact] = await check(stage)
        assert intact.ok
        parts = client.query(
            "SELECT path FROM system.parts WHERE table IN {t:Array(String)}", {"t": list(TABLES)}
        )
        client.close()
        server.kill()
        empty([str(row[0]) for row in parts.result_rows])
        await asyncio.to_thread(server.start)
        client = stage.client()
        assert {part.table for part in broken_parts(client)} == set(TABLES)
        assert without_issue(client)
        [damaged] = await check(stage)
        assert not damaged.ok
        with ended(writer):
            writer.restart()

            async def warns() -> bool:
                return f"svc_writer_broken_parts {len(broken_parts(client)):.1f}" in writer.get("metrics")[1]

            await eventually(warns)
            repaired = await reconcile(stage, tmp_path, "--repair")
            assert repaired.exit_code == 0, repaired.output
        assert scalar(client, "SELECT count() FROM issues FINAL") == issues
        assert counts(client) == exactly(stage.total)
        for part in broken_parts(client):
            client.command(part.removal)
        assert not broken_parts(client)
        client.close()
    finally:
        server.stop()
