"""Limits on one question, and on all questions together."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest

from storage.errors import QueryTooExpensive, StorageUnavailable
from storage.read.execute import Executor, Limits, Sql

ENDLESS: Final = Sql(
    "SELECT max(sipHash64(a.number, b.number)) FROM numbers(1000000) AS a CROSS JOIN numbers(1000000) AS b",
    {},
)
LARGE: Final = Sql("SELECT length(groupArray(number)) FROM numbers(10000000)", {})


@asynccontextmanager
async def asking(url: str, limits: Limits) -> AsyncIterator[Executor]:
    executor = Executor([url], limits)
    try:
        yield executor
    finally:
        await executor.close()


async def test_a_question_that_takes_too_long_ends_and_may_be_asked_again(clickhouse_url: str) -> None:
    async with asking(clickhouse_url, Limits(seconds=1)) as executor:
        with pytest.raises(StorageUnavailable, match="took too long"):
            await executor.rows(ENDLESS)


async def test_a_question_that_needs_too_much_memory_ends_with_advice_to_narrow_it(
    clickhouse_url: str,
) -> None:
    async with asking(clickhouse_url, Limits(memory_bytes=10 << 20)) as executor:
        with pytest.raises(QueryTooExpensive, match="memory: narrow the time range or the query"):
            await executor.rows(LARGE)


async def test_a_question_that_reads_too_many_rows_ends_with_advice_to_narrow_it(clickhouse_url: str) -> None:
    async with asking(clickhouse_url, Limits(rows=1_000)) as executor:
        with pytest.raises(QueryTooExpensive, match="rows: narrow the time range or the query"):
            await executor.rows(LARGE)


async def test_too_many_concurrent_questions_are_refused_for_now(clickhouse_url: str) -> None:
    async with asking(clickhouse_url, Limits(seconds=5, concurrency=1, wait_seconds=0.05)) as executor:
        first = asyncio.ensure_future(executor.rows(ENDLESS))
        with pytest.raises(StorageUnavailable, match="too many concurrent requests"):
            await asyncio.gather(executor.rows(ENDLESS), executor.rows(ENDLESS))
        with pytest.raises(StorageUnavailable, match="took too long"):
            await first
