import asyncio
import random
from pathlib import Path

import pytest

from local.clickhouse.server import LocalClickHouse
from tests.eventually import eventually
from tests.integration.storage.grouped import Stage, ended, exactly, whole
from tests.integration.storage.killing import kill_often, shorten

pytestmark = pytest.mark.slow


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
