"""Waiting for a condition instead of sleeping for a guess."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")
FIRST_SECONDS, MOST_SECONDS = 0.02, 0.25
"""Between two looks: at first, and at most."""


@overload
async def eventually(condition: Callable[[], Awaitable[T]], timeout: float = ...) -> T: ...
@overload
async def eventually(condition: Callable[[], T], timeout: float = ...) -> T: ...
async def eventually(condition: Callable[[], Any], timeout: float = 120.0) -> Any:
    """Poll until `condition` returns something true, and return that.

    The pauses grow, and are longer where a poll is costly: a waiting test leaves the machine to the processes
    that it waits for. Raises AssertionError with the condition and its last value after `timeout` seconds.
    """
    end, pause = time.monotonic() + timeout, FIRST_SECONDS
    while True:
        began = time.monotonic()
        got = condition()
        value = await got if inspect.isawaitable(got) else got
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(
                f"still {value!r} after {timeout} s: {getattr(condition, '__name__', condition)}"
            )
        await asyncio.sleep(max(pause, time.monotonic() - began))
        pause = min(MOST_SECONDS, pause * 1.3)
