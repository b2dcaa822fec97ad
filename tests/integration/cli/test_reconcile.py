import asyncio
import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from click.testing import CliRunner, Result

from cli.__main__ import svc
from schemas.ids import hex64, issue_id
from schemas.issues import IssueRecord, Outcome, encode_json
from schemas.times import iso
from storage.tables.rollups import ROLLUPS
from tests.integration.storage.grouped import PROJECTS, Stage, counts, ended, exactly, whole

FINGERPRINTS = range(100, 105)


async def reconcile(stage: Stage, folder: Path, *options: str) -> Result:
    """Run the command in a thread: it runs an event loop."""
    arguments = ["--data-dir", str(folder), "reconcile", "--json", "--wait", "5", *options]
    return await asyncio.to_thread(CliRunner().invoke, svc, arguments, env=stage.environ)


async def tell_outcomes_and_issues(stage: Stage) -> None:
    """The outcomes that the processors would have sent for the events that `stage` produced."""
    client = stage.client()
    now = datetime.now(UTC).timestamp() * 1000
    async with AIOKafkaProducer(bootstrap_servers=stage.settings.kafka_bootstrap, acks="all") as producer:
        for project in PROJECTS:
            # Rules that were skipped end no event: they are in no sum.
            outcomes = Counter(
                accepted=len(stage.sent[project]) + 3, duplicate=2, deadLettered=1, ruleSkipped=9
            )
            records = [
                Outcome(
                    str(project),
                    iso(int(now) // 60_000 * 60_000),
                    "js",
                    name,  # type: ignore[arg-type]
                    "",
                    count,
                    "grouper/0",
                    5,
                )
                for name, count in outcomes.items()
            ]
            for _ in range(2):
                await producer.send_and_wait(f"{stage.settings.topic_prefix}outcomes", encode_json(records))
            for fingerprint in FINGERPRINTS:
                events = client.command(
                    f"SELECT count() FROM events WHERE project_id = {project} AND fingerprint = {fingerprint}"
                )
                issue = IssueRecord(
                    id=hex64(issue_id(project, fingerprint)), project_id=str(project),
                    fingerprints=(hex64(fingerprint),),
                    error_type="TypeError", message="m", culprit="c", first_seen_ms=int(now), last_seen_ms=int(now),
                    events=int(str(events)), version=1,
                )  # fmt: skip
                await producer.send_and_wait(
                    f"{stage.settings.topic_prefix}issues", encode_json(issue), key=issue.id.encode()
                )
    client.close()


async def test_damage_is_reported_and_repaired(stage: Stage, tmp_path: Path) -> None:
    await stage.produce(12)
    writer = stage.writer()
    with ended(writer):
        await whole(stage)
        await tell_outcomes_and_issues(stage)
        result = await reconcile(stage, tmp_path)
        assert result.exit_code == 0, result.output
        found = json.loads(result.stdout)
        assert found["equal"]
        assert {one["projectId"]: one["stored"] for one in found["projects"]} == {
            str(project): len(ids) for project, ids in stage.sent.items()
        }
        client = stage.client()
        for damage in (
            "ALTER TABLE events DELETE WHERE id % 5 = 0 SETTINGS mutations_sync = 1",
            "ALTER TABLE payloads DELETE WHERE id % 7 = 0 SETTINGS mutations_sync = 1",
            "TRUNCATE TABLE issue_hour",
            "INSERT INTO tag_day SELECT * FROM tag_day LIMIT 3",
            "ALTER TABLE issues DELETE WHERE project_id = 7 SETTINGS mutations_sync = 1",
        ):
            client.command(damage)
        damaged = await reconcile(stage, tmp_path)
        assert damaged.exit_code == 1
        reported = {one["what"] for one in json.loads(damaged.stdout)["differences"]}
        assert {"stored", "payloads", "issue_hour", "tag_day", "events without issue"} <= reported
        repaired = await reconcile(stage, tmp_path, "--repair")
        assert repaired.exit_code == 0, repaired.output
        # The writer, which gets the events again, repairs the tables of counts on their days too.
        assert set(json.loads(repaired.stdout)["repaired"]) >= {"events", "payloads", "issues"}
        assert counts(client) == exactly(stage.total)
        client.close()


async def test_a_pipeline_that_is_behind_is_named(stage: Stage, tmp_path: Path) -> None:
    await stage.produce(2, repeat=0)
    result = await reconcile(stage, tmp_path, "--wait", "0")
    assert {"group": stage.settings.writer_group, "topic": stage.topic, "records": 2} in json.loads(
        result.stdout
    )["behind"]


@pytest.mark.slow
async def test_a_repair_leaves_uncommitted_records_to_the_writer(stage: Stage, tmp_path: Path) -> None:
    await stage.produce(2)
    writer = stage.writer()
    client = stage.client()
    try:
        with ended(writer):
            await whole(stage)
            writer.freeze()
            await stage.produce(4)
            client.command(
                "ALTER TABLE events DELETE WHERE id IN (SELECT id FROM events ORDER BY id LIMIT 7)"
                " SETTINGS mutations_sync = 1"
            )
            for _ in range(2):
                result = await reconcile(stage, tmp_path, "--repair", "--wait", "0")
                repaired = json.loads(result.stdout)
                assert not repaired["settled"]
                assert "is `svc writer` running?" in result.stderr
                assert repaired["repaired"]["events"] == 7
                assert counts(client)["events"] == 93
            # The event that was sent twice is stored once.
            writer.thaw()
            assert await whole(stage) == exactly(stage.total)
    finally:
        client.close()


async def test_duplicate_rows_are_removed_and_their_rollups_repaired(stage: Stage, tmp_path: Path) -> None:
    await stage.produce(6)
    client = stage.client()
    try:
        with ended(stage.writer()):
            await whole(stage)
            # In a separate part, and in one part with the first row.
            for condition in ("id % 2 = 0", "id % 3 = 0"):
                client.command(f"INSERT INTO events SELECT * FROM events WHERE {condition}")
                client.command(f"INSERT INTO payloads SELECT * FROM payloads WHERE {condition}")
                client.command("OPTIMIZE TABLE events FINAL")
            # In another partition, as a block that was repeated after a change of the retention once left them.
            for table, days in (("events", "retention_days"), ("payloads", "payload_days")):
                client.command(
                    f"INSERT INTO {table} SELECT * REPLACE (30 AS {days}) FROM {table} WHERE id % 7 = 0"
                )
            for rollup in ROLLUPS:
                client.command(f"INSERT INTO {rollup.table} SELECT * FROM {rollup.table}")
            assert counts(client)["events"] > stage.total
            repaired = json.loads((await reconcile(stage, tmp_path, "--repair")).stdout)["repaired"]
            assert repaired["events stored twice"] > 0 < repaired["payloads stored twice"]
            assert counts(client) == exactly(stage.total)
            # Rows and counts that were doubled together agree, until the rows are single.
            for table in ("events", "payloads", *(rollup.table for rollup in ROLLUPS)):
                client.command(f"INSERT INTO {table} SELECT * FROM {table}")
            await reconcile(stage, tmp_path, "--repair")
            assert counts(client) == exactly(stage.total)
    finally:
        client.close()


@pytest.mark.slow
async def test_a_double_does_not_hide_a_missing_event_of_its_issue_and_day(
    stage: Stage, tmp_path: Path
) -> None:
    await stage.produce(6, spread_days=0)
    client = stage.client()
    try:
        with ended(stage.writer()):
            await whole(stage)
            await tell_outcomes_and_issues(stage)
            assert (await reconcile(stage, tmp_path)).exit_code == 0
            [[double, lost]] = client.query(
                """
                SELECT toString(min(id)), toString(max(id)) FROM events
                GROUP BY project_id, fingerprint, toDate(ts) HAVING count() > 1 LIMIT 1"""
            ).result_rows
            for table in ("events", "payloads"):
                client.command(f"INSERT INTO {table} SELECT * FROM {table} WHERE toString(id) = '{double}'")
                client.command(
                    f"ALTER TABLE {table} DELETE WHERE toString(id) = '{lost}' SETTINGS mutations_sync = 1"
                )
            assert (await reconcile(stage, tmp_path, "--repair")).exit_code == 0
            assert counts(client) == exactly(stage.total)
    finally:
        client.close()
