"""The events that read calls are measured on: the tables of today take them, and their calls answer."""

import asyncio
import time

import pytest

from bench.storage_read import Recorder, calls
from bench.storage_read_data import build
from storage.client import Client, scalar
from storage.read.execute import Limits
from storage.read.reader import Reader, Session

pytestmark = pytest.mark.slow


def test_a_build_fills_every_table_and_each_measured_call_answers(
    client: Client, clickhouse_database_url: str
) -> None:
    now_ms = time.time_ns() // 1_000_000
    build(client, 20_000, now_ms)
    counts = [int(scalar(client, f"SELECT count() FROM {table}")) for table in ("events", "payloads")]
    assert counts == [20_000, 20_000]

    async def answers() -> list[object]:
        recorder = Recorder(clickhouse_database_url, Limits())
        reader, session = Reader(recorder, now_ms=lambda: now_ms), Session(recorder, lambda: now_ms)
        try:
            return [await each.call() for each in await calls(reader, session, 1)]
        finally:
            await reader.close()

    assert all(asyncio.run(answers()))
