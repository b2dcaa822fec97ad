"""Returns freed memory to the system after large bodies; the process would keep it for hours.

Uncollected reference cycles and glibc keep it (measured: docs/decisions/edge-fairness.md).
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
"""With a thousand connections a garbage collection blocks the loop for up to 0.1 s: rare enough not to affect the p99."""
_IDLE_CPU: Final = 0.2
"""CPU share below which a worker counts as idle."""
_TRIM_BYTES: Final = 16 * 1024 * 1024
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int:
    """Resident memory of this process; 0 on a system without `/proc`."""
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    return 0


def release_memory(idle: bool) -> None:
    """Let glibc return free memory; if `idle`, collect garbage first. Under load a collection would delay requests."""
    if idle:
        gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


async def trim_forever(
    resident: Callable[[], int] = resident_bytes,
    release: Callable[[bool], None] = release_memory,
    processor_seconds: Callable[[], float] = time.process_time,
    pause: float = _PAUSE_SECONDS,
) -> None:
    """Release memory whenever it has grown much since the last release; while idle, since the last idle time.

    So memory that is needed under load is kept as long as the load lasts.
    """
    idle_bytes = last = resident()
    used = processor_seconds()
    while True:
        await asyncio.sleep(pause)
        used, before = processor_seconds(), used
        idle = used - before < _IDLE_CPU * pause
        now = resident()
        if now > (idle_bytes if idle else last) + _TRIM_BYTES:
            release(idle)
            last = resident()
            # The remaining memory may be in use only temporarily.
            idle_bytes = min(last, idle_bytes + _TRIM_BYTES)
        else:
            last, idle_bytes = min(last, now), min(idle_bytes, now)
