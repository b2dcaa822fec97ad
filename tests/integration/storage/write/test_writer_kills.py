import asyncio
import random
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from local.clickhouse.server import LocalClickHouse
from storage.client import scalar
from tests.eventually import eventually
from tests.integration.storage.grouped import Stage, drained, ended, exactly, whole
from tests.integration.storage.killing import kill_often, shorten


async def stored(stage: Stage) -> int:
    """Rows that are there."""
    client = stage.client()
    try:
        return int(scalar(client, "SELECT count() FROM events"))
    finally:
        client.close()


async def test_kill_9_in_the_middle_of_a_backlog_leaves_each_event_once(stage: Stage) -> None:
    await stage.produce(120, events=50)
    writer = stage.writer(SVC_WRITER_BLOCK_ROWS="300")
    with ended(writer):
        for _ in range(5):
            before = await stored(stage)

            async def goes_on(before: int = before) -> bool:
                return await stored(stage) > before or await drained(stage)

            await eventually(goes_on)
            await asyncio.sleep(random.uniform(0, 0.2))
            writer.kill()
            writer.restart()
        assert await whole(stage) == exactly(stage.total)


async def test_two_writers_share_the_partitions_and_a_frozen_owner_repeats_nothing(stage: Stage) -> None:
    first, second = (
        stage.writer("a", SVC_WRITER_BLOCK_ROWS="500"),
        stage.writer("b", SVC_WRITER_BLOCK_ROWS="500"),
    )
    with ended(first, second):
        await eventually(lambda: first.get("readyz")[0] == second.get("readyz")[0] == 200)
        producing = asyncio.create_task(stage.produce(60))
        await asyncio.sleep(random.uniform(0.2, 0.6))
        first.freeze()
        await producing
        assert await whole(stage) == exactly(stage.total)
        first.thaw()
        await stage.produce(20)
        assert await whole(stage) == exactly(stage.total)


async def test_clickhouse_killed_under_the_writer_leaves_each_event_once(
    kafka_bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    server = LocalClickHouse(tmp_path / "clickhouse").start()
    writer = None
    try:
        stage = Stage(kafka_bootstrap, server.url(), topic_prefix, tmp_path)
        await stage.prepare()
        writer = stage.writer(SVC_WRITER_BLOCK_ROWS="500")
        for _ in range(4):
            producing = asyncio.create_task(stage.produce(30))
            await asyncio.sleep(random.uniform(0.3, 1.0))
            server.kill()
            if random.random() < 0.5:
                writer.kill()
                writer.restart()
            await producing
            await asyncio.to_thread(server.start)
        assert urlsplit(stage.url).port
        assert await whole(stage) == exactly(stage.total)
    finally:
        if writer is not None:
            with ended(writer):
                pass
        server.stop()


@pytest.mark.parametrize("window", [10_000, 4])
async def test_writers_and_clickhouse_killed_in_a_backlog_leave_each_event_once(
    kafka_bootstrap: str, topic_prefix: str, tmp_path: Path, window: int
) -> None:
    """Also where the tables remember so few tokens that each is forgotten before its block is repeated."""
    server = LocalClickHouse(tmp_path / "clickhouse").start()
    try:
        stage = await Stage(kafka_bootstrap, server.url(), topic_prefix, tmp_path).prepare()
        shorten(stage, window)
        await stage.produce(120, events=50)
        done = await kill_often(stage, server, kills=4, server_kills=1, rows=300)
        assert done.found == done.wanted, done
    finally:
        server.stop()
