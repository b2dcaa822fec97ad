"""Gives memory back to the system after large bodies: what was freed would stay with the process for hours.

Two things keep it: reference cycles until they are collected, and glibc (measured: docs/decisions/edge-fairness.md).
"""

import asyncio
import ctypes
import gc
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

_PAUSE_SECONDS: Final = 25.0
"""Collecting holds the loop for up to a tenth of a second while there are a thousand connections: rarely enough to stay out of a p99."""
_LITTLE: Final = 0.2
"""The part of a processor below which a worker has little to do."""
_MUCH_BYTES: Final = 16 * 1024 * 1024
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int:
    """Memory of this process; 0 where the system doesn't say it as Linux does."""
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    return 0


def give_back(resting: bool) -> None:
    """Let glibc return free memory; when `resting`, collect garbage first. Under load a collection would delay requests."""
    if resting:
        gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


async def trim_forever(
    resident: Callable[[], int] = resident_bytes,
    give: Callable[[bool], None] = give_back,
    processor_seconds: Callable[[], float] = time.process_time,
    pause: float = _PAUSE_SECONDS,
) -> None:
    """Give back whenever there is much more than after the last time; while there is little to do, than was needed when there was little.

    What is needed under load is so kept as long as the load, and no longer.
    """
    at_rest = last = resident()
    used = processor_seconds()
    while True:
        await asyncio.sleep(pause)
        used, before = processor_seconds(), used
        resting = used - before < _LITTLE * pause
        now = resident()
        if now > (at_rest if resting else last) + _MUCH_BYTES:
            give(resting)
            last = resident()
            # What stays may be in use only for now: the next times will tell.
            at_rest = min(last, at_rest + _MUCH_BYTES)
        else:
            last, at_rest = min(last, now), min(at_rest, now)
