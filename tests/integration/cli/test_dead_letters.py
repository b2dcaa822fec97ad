"""`svc dead-letters`: listing and putting back."""

import asyncio
import json
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from click.testing import CliRunner, Result

from cli.dead_letters import dead_letters
from cli.workspace import Workspace
from schemas.dead_letters import DeadLetter
from tests.eventually import eventually
from tests.integration.conftest import PARTITIONS, Start
from tests.integration.processors import readback
from tests.integration.processors.feed import HEADERS, Feed, produce
from tests.integration.processors.test_exactness import backlog, until_counted


async def run(bootstrap: str, prefix: str, folder: Path, *arguments: str) -> Result:
    environ = {"SVC_KAFKA_BOOTSTRAP": bootstrap, "SVC_TOPIC_PREFIX": prefix, "SVC_DATA_DIR": str(folder)}
    workspace = Workspace(folder, environ)
    return await asyncio.to_thread(CliRunner().invoke, dead_letters, arguments, obj=workspace)


async def test_dead_letters_are_listed_and_replayed_once(
    kafka_bootstrap: str, prefix: str, start: Start, tmp_path: Path
) -> None:
    feed = Feed(PARTITIONS, seed=1)
    await produce(kafka_bootstrap, prefix + "events", [(1, b"\xc1"), *backlog(feed, 4)])
    worker = start()
    await until_counted(kafka_bootstrap, prefix, feed, worker)
    listed = json.loads((await run(kafka_bootstrap, prefix, tmp_path, "list", "--json")).output)[
        "deadLetters"
    ]
    assert [(one["topic"], one["partition"], one["offset"]) for one in listed] == [(prefix + "events", 1, 0)]
    assert "events/1/0" in (await run(kafka_bootstrap, prefix, tmp_path, "list")).output

    assert "1 replayed" in (await run(kafka_bootstrap, prefix, tmp_path, "replay")).output
    again = [r for r in await readback.read(kafka_bootstrap, prefix + "events") if r.value == b"\xc1"]
    assert [(r.partition, list(r.headers)) for r in again] == [(1, HEADERS)] * 2
    await eventually(lambda: worker.metric("svc_processors_dead_letters_total") == 2)
    left = json.loads((await run(kafka_bootstrap, prefix, tmp_path, "list", "--json")).output)["deadLetters"]
    assert [one["offset"] for one in left] == [again[1].offset]
    assert "1 replayed" in (await run(kafka_bootstrap, prefix, tmp_path, "replay", "--limit", "1")).output
    everything = json.loads((await run(kafka_bootstrap, prefix, tmp_path, "list", "--json", "--all")).output)
    assert len(everything["deadLetters"]) >= 2


async def test_replayed_letters_are_known_when_the_offset_of_the_group_has_expired(
    kafka_bootstrap: str, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = DeadLetter(prefix + "events", 0, 5, "grouper", "bad", "2026-01-01T00:00:00.000Z")
    producer = AIOKafkaProducer(bootstrap_servers=kafka_bootstrap)
    async with producer:
        for _ in range(3):
            await producer.send_and_wait(prefix + "dead-letters", b"\xc1", headers=origin.headers())
    assert "2 replayed" in (await run(kafka_bootstrap, prefix, tmp_path, "replay", "--limit", "2")).output
    monkeypatch.setattr("broker.dead_letters.DEAD_LETTERS_GROUP", "one-without-offsets")
    assert len((await run(kafka_bootstrap, prefix, tmp_path, "list")).output.splitlines()) == 1
    assert "1 replayed" in (await run(kafka_bootstrap, prefix, tmp_path, "replay")).output
    monkeypatch.setattr("broker.dead_letters.DEAD_LETTERS_GROUP", "one-more-without-offsets")
    assert "no dead letters" in (await run(kafka_bootstrap, prefix, tmp_path, "list")).output
    shown = await run(kafka_bootstrap, prefix, tmp_path, "list", "--all", "--json")
    assert len(json.loads(shown.output)["deadLetters"]) == 3
    assert len(await readback.read(kafka_bootstrap, prefix + "events")) == 3
