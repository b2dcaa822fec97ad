"""`svc erase` on the real servers, with a writer at work."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer
from click.testing import CliRunner, Result

from cli.__main__ import svc
from control.project_edits import create
from control.project_store import ProjectStore
from schemas.change_records import Author
from schemas.environment import load
from schemas.ids import hex64, issue_id
from schemas.issues import Command, decode_delta
from schemas.projects import Project
from schemas.settings import KafkaSettings
from storage.client import scalar
from tests.eventually import eventually
from tests.integration.cli.test_reconcile import FINGERPRINTS, reconcile, tell_outcomes_and_issues
from tests.integration.storage.grouped import Stage, ended, whole

USER = "user-7"


async def erase(stage: Stage, *options: str, given: str | None = None) -> Result:
    """Run the command in a thread: it runs event loops."""
    arguments = ["--data-dir", str(stage.folder), "erase", *options]
    return await asyncio.to_thread(CliRunner().invoke, svc, arguments, env=stage.environ, input=given)


def printed(result: Result) -> dict[str, Any]:
    """The JSON of a run that went well."""
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@asynccontextmanager
async def processors(stage: Stage) -> AsyncIterator[list[Command]]:
    """A stand-in that reads the topics of the processors, and keeps the commands."""
    prefix = stage.settings.topic_prefix
    consumer = AIOKafkaConsumer(
        f"{prefix}events",
        f"{prefix}issue-deltas",
        bootstrap_servers=stage.settings.kafka_bootstrap,
        group_id=stage.settings.processors_app,
        auto_offset_reset="earliest",
        auto_commit_interval_ms=100,
    )
    found: list[Command] = []

    async def read() -> None:
        async for record in consumer:
            command = decode_delta(record.value).command
            assert command is not None
            found.append(command)

    await consumer.start()
    task = asyncio.create_task(read())
    try:
        yield found
    finally:
        task.cancel()
        await asyncio.wait([task])
        await consumer.stop()


async def projects(stage: Stage) -> list[Project]:
    async with ProjectStore(
        load(KafkaSettings, {k: v for k, v in stage.environ.items() if "TOPIC" in k or "KAFKA" in k})
    ) as store:
        return store.all()


async def test_a_users_events_are_erased_and_reconcile_does_not_restore_them(
    stage: Stage, tmp_path: Path
) -> None:
    await stage.produce(8)
    with ended(stage.writer()):
        await whole(stage)
        await tell_outcomes_and_issues(stage)
        client = stage.client()
        there = f"SELECT count() FROM events WHERE project_id = 8 AND user_id = '{USER}'"
        size = scalar(client, there)
        seen = printed(await erase(stage, "--project", "8", "--user", USER, "--dry-run", "--json"))
        assert (seen["events"], seen["dryRun"]) == (size, True)
        assert scalar(client, there) == size
        done = printed(
            await erase(stage, "--project", "8", "--user", "-", "--yes", "--json", given=f"{USER}\n")
        )
        assert done["events"] == size
        assert scalar(client, there) == 0
        assert {one["topic"] for one in done["left"]} >= {
            stage.topic,
            f"{stage.settings.topic_prefix}dead-letters",
        }
        async with processors(stage) as commands:
            await eventually(lambda: {one.kind for one in commands} == {"redact"}, 60)
        assert {one.project_id for one in commands} == {"8"}
        assert {one.id for one in commands} == {f"erase-{done['erasure']}"}
        [kept] = client.query("SELECT * FROM changes").result_rows
        assert "userErased" in kept
        assert USER not in str(kept)
        equal = await reconcile(stage, tmp_path)
        assert equal.exit_code == 0, equal.output
        figures = {one["projectId"]: one for one in json.loads(equal.stdout)["projects"]}
        assert (figures["8"]["erased"], figures["7"]["erased"]) == (size, 0)
        # A repair reads from the log, which still holds them.
        client.command("ALTER TABLE events DELETE WHERE id % 5 = 0 SETTINGS mutations_sync = 1")
        repaired = await reconcile(stage, tmp_path, "--repair")
        assert repaired.exit_code == 0, repaired.output
        assert json.loads(repaired.stdout)["repaired"]["events"] > 0
        assert scalar(client, there) == 0
        again = printed(await erase(stage, "--project", "8", "--user", USER, "--yes", "--json"))
        assert again["events"] == 0
        assert again["before"]
        client.close()


async def test_who_is_unknown_is_refused_in_one_line(stage: Stage) -> None:
    unknown = await erase(stage, "--project", "8", "--user", "unknown", "--yes")
    assert (unknown.exit_code, unknown.stderr) == (
        2,
        "svc: project 8 has no event of this user, and none was erased\n",
    )
    nowhere = await erase(stage, "--project", "shop", "--yes")
    assert (nowhere.exit_code, nowhere.stderr) == (2, "svc: there is no project shop\n")
    never = await erase(stage, "--project", "4711", "--yes")
    assert (never.exit_code, never.stderr) == (2, "svc: there is no project 4711\n")
    anonymous = await erase(stage, "--project", "8", "--user", "", "--yes")
    assert anonymous.exit_code == 2
    assert "the user id is empty" in anonymous.stderr


async def test_a_pipeline_that_is_behind_is_awaited_and_reported(stage: Stage) -> None:
    await stage.produce(2, repeat=0)
    writer = stage.writer()
    with ended(writer):
        await whole(stage)
        writer.kill()
        await stage.produce(1, repeat=0)
        result = await erase(stage, "--project", "8", "--user", USER, "--yes", "--wait", "0.5")
        assert result.exit_code == 1
        assert f"is 1 records behind on {stage.topic}" in result.stderr
        client = stage.client()
        assert scalar(client, "SELECT count() FROM erasures") == 0
        client.close()


async def test_a_project_goes_with_its_record_and_its_name(stage: Stage, tmp_path: Path) -> None:
    settings = load(KafkaSettings, {k: v for k, v in stage.environ.items() if "TOPIC" in k or "KAFKA" in k})
    async with ProjectStore(settings) as store:
        for number, name in ((7, "kept"), (8, "shop")):
            made = create(name, now_ms=0)
            await store.write(
                Project(id=str(number), name=name, created_at=made.created_at, tokens=made.tokens),
                Author("tester", "command"),
            )
    await stage.produce(4)
    with ended(stage.writer()):
        await whole(stage)
        await tell_outcomes_and_issues(stage)
        client = stage.client()

        def named() -> bool:
            return bool(scalar(client, "SELECT count() FROM projects WHERE name = 'shop'"))

        await eventually(named, 60)
        async with processors(stage) as commands:
            plain = await erase(stage, "--project", "shop", given="y\n")
        assert plain.exit_code == 0, plain.output
        assert {(one.issue, one.data["wholly"]) for one in commands} == {
            (hex64(issue_id(8, fingerprint)), True) for fingerprint in FINGERPRINTS
        }
        assert "Erase project shop (8)" in plain.stderr
        assert [project.name for project in await projects(stage)] == ["kept"]
        for table in ("events", "payloads", "issues", "outcomes", "tag_day"):
            assert scalar(client, f"SELECT count() FROM {table} WHERE project_id = 8") == 0
            assert scalar(client, f"SELECT count() FROM {table} WHERE project_id = 7") > 0
        assert scalar(client, "SELECT count() FROM projects WHERE name = 'shop'") == 0
        rows = "SELECT kind, before, after FROM changes FINAL WHERE project_id = 8 ORDER BY kind"
        kinds = ["projectCreated", "projectErased", "tokenRevoked"]
        assert client.query(rows).result_rows == [(kind, "", "") for kind in kinds]
        equal = await reconcile(stage, tmp_path)
        assert equal.exit_code == 0, equal.output
        client.command("TRUNCATE TABLE issues")
        repaired = await reconcile(stage, tmp_path, "--repair")
        assert repaired.exit_code == 0, repaired.output
        assert scalar(client, "SELECT count() FROM issues WHERE project_id = 8") == 0
        again = printed(await erase(stage, "--project", "8", "--yes", "--json"))
        assert again["before"]
        refused = await erase(stage, "--project", "8", "--user", USER, "--yes")
        assert refused.exit_code == 2
        client.close()
