"""Limits on one question, and on all questions of the reading user together."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Final

import pytest

from local.clickhouse.local_clickhouse import LocalClickHouse
from storage.errors import QueryTooExpensive, StorageUnavailable
from storage.read.execute import Executor, Limits, Sql

ENDLESS: Final = Sql(
    "SELECT max(sipHash64(a.number, b.number)) FROM numbers(1000000) AS a CROSS JOIN numbers(1000000) AS b",
    {},
)
LARGE: Final = Sql("SELECT length(groupArray(number)) FROM numbers(10000000)", {})
MEMORY: Final = 1 << 30


@pytest.fixture(scope="module")
def reader_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address for the reading user of a separate server, since containers have no such user."""
    server = LocalClickHouse(tmp_path_factory.mktemp("limits"), query_memory=MEMORY).start(120)
    try:
        yield server.url("reader")
    finally:
        server.stop()


@asynccontextmanager
async def asking(url: str, limits: Limits) -> AsyncIterator[Executor]:
    executor = Executor([url], limits)
    try:
        yield executor
    finally:
        await executor.close()


async def test_a_question_that_takes_too_long_ends_and_may_be_asked_again(reader_url: str) -> None:
    async with asking(reader_url, Limits(seconds=1)) as executor:
        with pytest.raises(StorageUnavailable, match="took too long"):
            await executor.rows(ENDLESS)


async def test_a_question_that_needs_too_much_memory_ends_with_advice_to_narrow_it(reader_url: str) -> None:
    async with asking(reader_url, Limits(memory_bytes=10 << 20)) as executor:
        with pytest.raises(QueryTooExpensive, match="memory: narrow the time range or the query"):
            await executor.rows(LARGE)


async def test_a_question_that_reads_too_many_rows_ends_with_advice_to_narrow_it(reader_url: str) -> None:
    async with asking(reader_url, Limits(rows=1_000)) as executor:
        with pytest.raises(QueryTooExpensive, match="rows: narrow the time range or the query"):
            await executor.rows(LARGE)


async def test_too_many_concurrent_questions_are_refused_for_now(reader_url: str) -> None:
    async with asking(reader_url, Limits(seconds=5, concurrency=1, wait_seconds=0.05)) as executor:
        first = asyncio.ensure_future(executor.rows(ENDLESS))
        with pytest.raises(StorageUnavailable, match="too many concurrent requests"):
            await asyncio.gather(executor.rows(ENDLESS), executor.rows(ENDLESS))
        with pytest.raises(StorageUnavailable, match="took too long"):
            await first


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("max_execution_time", 0),
        ("max_execution_time", 3600),
        ("max_memory_usage", 0),
        ("max_memory_usage", 4 * MEMORY),
        ("max_memory_usage_for_user", 0),
        ("max_rows_to_read", 0),
        ("max_rows_to_read", 10**12),
        ("max_threads", 64),
        ("max_concurrent_queries_for_user", 0),
    ],
)
async def test_the_reading_user_can_not_lift_its_limits(reader_url: str, setting: str, value: int) -> None:
    async with asking(reader_url, Limits()) as executor:
        with pytest.raises(StorageUnavailable, match="settings profile") as refused:
            await executor.rows(Sql(f"SELECT 1 SETTINGS {setting} = {value}", {}))
        assert setting in str(refused.value.__cause__)
