"""Gives memory back to the system after large bodies: what was freed would stay with the process for hours.

Two things keep it: connections and requests that point at each other until they are collected, and glibc (measured:
docs/decisions/edge-fairness.md).
"""

import asyncio
import ctypes
import gc
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

_PAUSE_SECONDS: Final = 25.0
"""Collecting holds the loop for some milliseconds, ten times that after thousands of connections: rarely enough to stay out of a p99."""
_MUCH_BYTES: Final = 16 * 1024 * 1024
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int:
    """Memory of this process; 0 where the system doesn't say it as Linux does."""
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    return 0


def give_back() -> None:
    """Collect what points at itself, and let glibc, where it is that, return what is free."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


async def trim_forever(
    resident: Callable[[], int] = resident_bytes,
    give: Callable[[], None] = give_back,
    pause: float = _PAUSE_SECONDS,
) -> None:
    """Give back whenever there is much more than after the last time, or less than it has ever been."""
    least = resident()
    while True:
        await asyncio.sleep(pause)
        if resident() > least + _MUCH_BYTES:
            give()
            least = resident()
        else:
            least = min(least, resident())
