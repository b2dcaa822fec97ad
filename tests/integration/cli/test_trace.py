"""`svc trace` shows the path of an event."""

import asyncio
import json
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaProducer
from click.testing import CliRunner, Result
from msgspec.structs import replace

from cli.__main__ import svc
from control.project_edits import create
from control.project_store import ProjectStore
from schemas.change_records import Author
from schemas.chunks import decode_chunk, encode_chunk
from schemas.dead_letters import DeadLetter
from schemas.ids import id_text
from schemas.settings import KafkaSettings
from storage.tables.migrations.migrate import migrate
from tests.eventually import eventually
from tests.integration.conftest import PARTITIONS, Start
from tests.integration.processors.feed import Feed, produce
from tests.integration.processors.test_exactness import processed


async def test_every_copy_decision_and_dead_letter_of_an_event_is_told(
    kafka_bootstrap: str, clickhouse_database_url: str, prefix: str, start: Start, tmp_path: Path
) -> None:
    migrate(clickhouse_database_url)
    env = {
        "SVC_KAFKA_BOOTSTRAP": kafka_bootstrap,
        "SVC_TOPIC_PREFIX": prefix,
        "SVC_CLICKHOUSE_URL": clickhouse_database_url,
        "SVC_PROCESSORS_APP": f"{prefix}processors",
        "COLUMNS": "200",
    }

    async def run(*words: str) -> Result:
        command = ["--data-dir", str(tmp_path), "trace", *words]
        return await asyncio.to_thread(CliRunner(env=env).invoke, svc, command)

    async def steps(*words: str) -> list[tuple[str, str]]:
        answer = await run(*words, "--json")
        assert answer.exit_code == 0, answer.output
        found: list[dict[str, Any]] = json.loads(answer.output)["steps"]
        return [(one["stage"], one["what"]) for one in found]

    chunk = Feed(PARTITIONS, seed=71).chunk(2, 3, repeats=0)
    event = decode_chunk(chunk)[1]
    project = replace(create("shop", now_ms=1_760_000_000_000), id=str(event.project))
    async with ProjectStore(KafkaSettings(kafka_bootstrap=kafka_bootstrap, topic_prefix=prefix)) as store:
        await store.write(project, Author("tester", "command"))
    words = [id_text(event.id), "--project", "shop"]
    assert "not found" in (await run(*words)).output
    assert "name its project" in (await run(words[0])).output
    await produce(kafka_bootstrap, prefix + "events", [(2, chunk)])
    received = ("edge", "accepted from test/1")
    first = [received, ("events", "partition 2, offset 0, event 2 of 3")]

    async def is_known() -> bool:
        # A new broker has no coordinator for a moment.
        return (await run(*words)).exit_code == 0

    await eventually(is_known)
    assert await steps(*words) == [*first, ("grouped", "not read by the processors yet, 0 records before it")]

    worker = start()
    await eventually(lambda: processed(worker, 1))
    [*same, (stage, decided)] = await steps(*words)
    assert (same, stage) == (first, "grouped")
    assert decided.startswith("partition 2, offset 0: new, fingerprint ")

    # Alone it leaves nothing in `grouped`; with a new event in its chunk it is named there.
    others = decode_chunk(Feed(PARTITIONS, seed=72).chunk(2, 1))
    await produce(
        kafka_bootstrap, prefix + "events", [(2, encode_chunk([event])), (2, encode_chunk([event, *others]))]
    )
    dead = DeadLetter(prefix + "events", 2, 2, "grouper", "for the test", "2026-01-01T00:00:00.000Z")
    async with AIOKafkaProducer(bootstrap_servers=kafka_bootstrap) as producer:
        await producer.send_and_wait(prefix + "dead-letters", b"", headers=dead.headers())
    await eventually(lambda: processed(worker, 3))

    async def committed() -> bool:
        return ("grouped", "no new event was in its record: a repeated id, dropped") in await steps(*words)

    await eventually(committed)
    shown = await steps(*words)
    assert shown.count(received) == 3
    assert ("events", "partition 2, offset 2, event 1 of 2") in shown
    assert [
        text for stage, text in shown if stage == "grouped" and text.endswith("a repeated id, dropped")
    ] == [
        "no new event was in its record: a repeated id, dropped",
        "partition 2, offset 1: a repeated id, dropped",
    ]
    assert ("dead-letters", f"offset 0: from {prefix}events 2/2, grouper: for the test") in shown
    assert decided in (await run(*words)).output
