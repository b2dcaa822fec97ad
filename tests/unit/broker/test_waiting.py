"""Waiting ends with the work, with its failure, or with the stop."""

import asyncio

import pytest

from broker.waiting import pause, until


async def test_the_result_of_the_work_is_returned() -> None:
    assert await until(asyncio.Event(), asyncio.sleep(0, "done")) == "done"


async def test_a_stop_cancels_work_that_does_not_end() -> None:
    stop, cancelled = asyncio.Event(), asyncio.Event()

    async def hang() -> str:
        stop.set()
        try:
            await asyncio.Event().wait()
            return "never"
        finally:
            cancelled.set()

    assert await until(stop, hang()) is None
    await cancelled.wait()


async def test_the_error_of_the_work_is_raised() -> None:
    async def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await until(asyncio.Event(), fail())


async def test_a_pause_ends_by_its_time_or_by_the_stop() -> None:
    stop = asyncio.Event()
    await pause(stop, 0.001)
    assert not stop.is_set()
    asyncio.get_running_loop().call_soon(stop.set)
    async with asyncio.timeout(60):
        await pause(stop, 600)
