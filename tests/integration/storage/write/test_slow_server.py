"""A ClickHouse that takes its time for each answer delays events, and that is all."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import pytest

from tests.integration.storage.grouped import Stage, ended, exactly, whole

ANSWER_SECONDS = 1.0


@asynccontextmanager
async def slow(url: str) -> AsyncIterator[str]:
    """The address of a server each of whose answers takes a second longer."""
    parts = urlsplit(url)

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
        later = asyncio.get_running_loop().call_later
        with suppress(OSError):
            while data := await reader.read(1 << 20):
                later(seconds, writer.write, data)
        later(seconds, writer.close)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection(parts.hostname, parts.port)
        await asyncio.gather(pass_on(reader, to_server, 0.0), pass_on(from_server, writer, ANSWER_SECONDS))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield url.replace(f"{parts.hostname}:{parts.port}", f"127.0.0.1:{port}")
    finally:
        server.close()


@pytest.mark.slow
async def test_events_are_stored_by_a_server_whose_every_answer_takes_a_second(stage: Stage) -> None:
    await stage.produce(1)
    async with slow(stage.url) as url:
        writer = stage.writer(SVC_CLICKHOUSE_URL=url)
        with ended(writer):
            assert await whole(stage, 300.0) == exactly(stage.total)
