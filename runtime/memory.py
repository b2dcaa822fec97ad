"""Returns freed memory to the system after a burst of work; a process would keep it for hours.

C's allocator keeps it, and so do reference cycles that wait for the garbage collector (measured:
docs/decisions/edge.md).
"""

import ctypes
import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_LOOK_SECONDS: Final = 5.0
_LOOKS: Final = 5
"""Looks between two releases while idle, and between two under load. With a thousand connections a garbage collection
takes up to 0.1 s: each 25 s it is rare enough not to affect the p99."""
_IDLE_CPU: Final = 0.2
"""CPU share below which a process counts as idle."""
_TRIM_BYTES: Final = 16 * 1024 * 1024
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int:
    """Resident memory of this process; 0 on a system without `/proc`."""
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    return 0


def release_memory() -> None:
    """Let the allocator return free memory."""
    # Of glibc; other C libraries have no such function.
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def trim_in_background(*, collect: bool = False) -> None:
    """Start a thread that releases memory as long as the process runs.

    With `collect` it collects garbage first while the process is idle: in a process that makes many reference
    cycles and keeps few objects. Under load a collection would delay requests.
    """

    def trim() -> None:
        for is_idle in times_to_trim(resident_bytes, time.process_time, time.sleep):
            if collect and is_idle:
                gc.collect()
            release_memory()

    threading.Thread(target=trim, name="memory", daemon=True).start()


def times_to_trim(
    resident: Callable[[], int], processor_seconds: Callable[[], float], pause: Callable[[float], None]
) -> Iterator[bool]:
    """Yield, whenever memory is to be released, whether the process is idle.

    That is when memory has grown much since the last release; while idle, since the last idle time. So memory that is
    needed under load is kept as long as the load lasts.
    """
    idle_bytes = last = resident()
    used = processor_seconds()
    looks = {True: _LOOKS, False: _LOOKS}
    while True:
        pause(_LOOK_SECONDS)
        used, before = processor_seconds(), used
        is_idle = used - before < _IDLE_CPU * _LOOK_SECONDS
        looks = {idle: count + 1 for idle, count in looks.items()}
        now = resident()
        if looks[is_idle] >= _LOOKS and now > (idle_bytes if is_idle else last) + _TRIM_BYTES:
            looks[is_idle] = 0
            yield is_idle
            last = resident()
            # The remaining memory may be in use only temporarily.
            idle_bytes = min(last, idle_bytes + _TRIM_BYTES)
        else:
            last, idle_bytes = min(last, now), min(idle_bytes, now)
