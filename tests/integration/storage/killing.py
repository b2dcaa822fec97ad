"""Writers and ClickHouse killed again and again while a backlog is written."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress

from msgspec import Struct

from local.clickhouse.server import LocalClickHouse
from storage.client import ClickHouseError, scalar
from storage.tables.rollups import ROLLUPS
from tests.eventually import eventually
from tests.integration.storage.grouped import Stage, Writer, counts, drained, ended, exactly

TABLES = ("events", "payloads", *(rollup.table for rollup in ROLLUPS))
SECONDS = 240.0


class Killed(Struct):
    """The result of a run with kills.

    It counts the kills of writers and of ClickHouse, and the blocks repeated and completed after them. It has
    the tables at the end, and what they must hold.
    """

    writers: int
    servers: int
    repeated: int
    completed: int
    found: dict[str, int]
    wanted: dict[str, int]


def shorten(stage: Stage, window: int) -> None:
    """Let every table remember so many tokens."""
    client = stage.client()
    try:
        for table in TABLES:
            client.command(
                f"ALTER TABLE {table} MODIFY SETTING non_replicated_deduplication_window = {window}"
            )
    finally:
        client.close()


async def kill_often(
    stage: Stage, server: LocalClickHouse, *, kills: int, server_kills: int, rows: int
) -> Killed:
    """Let two writers write what was produced, in blocks of `rows`, while they and ClickHouse are killed.

    The kills are spread over the backlog. While one writer is down the other continues, so that tokens are
    overrun where tables remember few.
    """
    writers = [
        stage.writer(name, SVC_WRITER_BLOCK_ROWS=str(rows), SVC_WRITER_WAIT_SECONDS="0.3") for name in "ab"
    ]
    servers = set(random.sample(range(kills), server_kills))
    total = stage.total
    with ended(*writers):
        for turn in range(kills):
            await _beyond(stage, total * turn // (kills + 1))
            await asyncio.sleep(random.uniform(0, 0.3))
            victim = writers[turn % 2]
            victim.kill()
            if turn in servers:
                server.kill()
                await asyncio.to_thread(server.start)
            await asyncio.sleep(random.uniform(0, 0.5))
            victim.restart()

        async def done() -> bool:
            return await drained(stage)

        await eventually(done, SECONDS)
    client = stage.client()
    try:
        return Killed(
            writers=kills,
            servers=server_kills,
            repeated=_lines(writers, "replaying a planned block"),
            completed=_lines(writers, "completed a block"),
            found=counts(client),
            wanted=exactly(total),
        )
    finally:
        client.close()


async def _beyond(stage: Stage, rows: int) -> None:
    async def there() -> bool:
        with suppress(ClickHouseError):
            return await asyncio.to_thread(_stored, stage) >= rows
        return False

    await eventually(there, SECONDS)


def _stored(stage: Stage) -> int:
    client = stage.client()
    try:
        return int(scalar(client, "SELECT count() FROM events"))
    finally:
        client.close()


def _lines(writers: Sequence[Writer], text: str) -> int:
    return sum(writer.log.read_text().count(text) for writer in writers)
