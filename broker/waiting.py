"""Waits that a stop event ends."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


async def pause(stop: asyncio.Event, seconds: float) -> None:
    """Sleep for `seconds`, or until `stop` is set."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()


async def until(stop: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """Run `work` and return its result; when `stop` is set, cancel it and return None."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        working.cancel()
        stopping.cancel()
