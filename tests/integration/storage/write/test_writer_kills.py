import asyncio
import random
from contextlib import suppress
from pathlib import Path

import pytest

from local.clickhouse.local_clickhouse import LocalClickHouse
from storage.client import ClickHouseError
from tests.eventually import eventually
from tests.integration.storage.exactly_once.test_tokens import shorten
from tests.integration.storage.grouped import Stage, counts, ended, exactly, whole

pytestmark = pytest.mark.slow

KILLS, SECONDS = 4, 240.0


def stored(stage: Stage) -> int:
    client = stage.client()
    try:
        return counts(client)["events"]
    finally:
        client.close()


@pytest.mark.parametrize("window", [10_000, 4])
async def test_writers_and_clickhouse_killed_in_a_backlog_leave_each_event_once(
    kafka_bootstrap: str, topic_prefix: str, tmp_path: Path, window: int
) -> None:
    """Also where the tables remember so few tokens that each is forgotten before its block is repeated.

    While one writer is down the other continues, so that tokens are overrun.
    """
    server = LocalClickHouse(tmp_path / "clickhouse").start()
    try:
        stage = await Stage(kafka_bootstrap, server.url(), topic_prefix, tmp_path).prepare()
        client = stage.client()
        shorten(client, window)
        client.close()
        await stage.produce(120, events=50)
        smaller = {"SVC_WRITER_BLOCK_ROWS": "300", "SVC_WRITER_WAIT_SECONDS": "0.3"}
        writers = [stage.writer(name, **smaller) for name in "ab"]
        with ended(*writers):
            for turn in range(KILLS):

                async def is_on_its_way(least: int = stage.total * turn // (KILLS + 1)) -> bool:
                    with suppress(ClickHouseError):
                        return await asyncio.to_thread(stored, stage) >= least
                    return False

                await eventually(is_on_its_way, SECONDS)
                await asyncio.sleep(random.uniform(0, 0.3))
                victim = writers[turn % 2]
                victim.kill()
                if turn == KILLS // 2:
                    server.kill()
                    await asyncio.to_thread(server.start)
                await asyncio.sleep(random.uniform(0, 0.5))
                victim.restart()
            assert await whole(stage, SECONDS) == exactly(stage.total)
    finally:
        server.stop()
