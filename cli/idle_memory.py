"""Gives memory back that a burst of events left: the allocator keeps what a process has freed, since it may need it again."""

import ctypes
import sys
import threading
import time
from typing import Final

_SECONDS: Final = 5.0
_BUSY: Final = 0.1
"""The share of a core that a process takes under load."""


def release_when_idle() -> None:
    """Start a thread that releases freed memory each time the process has become idle."""
    threading.Thread(target=_watch, name="idle memory", daemon=True).start()


def _watch() -> None:
    was_busy = True
    while True:
        began = time.process_time()
        time.sleep(_SECONDS)
        is_busy = time.process_time() - began > _BUSY * _SECONDS
        if was_busy and not is_busy:
            _release()
        was_busy = is_busy


def _release() -> None:
    if pyarrow := sys.modules.get("pyarrow"):
        pyarrow.default_memory_pool().release_unused()
    # Of glibc; other C libraries have no such function.
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)
