"""Times and ids in the wire format: ISO 8601 in UTC with milliseconds, UUIDs of version 7."""

import os
import threading
import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso(ns: int) -> str:
    """Unix time in nanoseconds as `2026-01-31T12:00:00.123Z`; truncated to milliseconds."""
    seconds, ms = divmod(ns // 1_000_000, 1_000)
    return f"{_second(seconds)}.{ms:03d}Z"


@lru_cache(maxsize=256)
def _second(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")


class Ids:
    """UUIDs of version 7 (RFC 9562, section 5.7), monotonic within a process even if the clock goes back.

    The 12 bits after the version count within a millisecond (section 6.2, method 1); an overflow borrows the next
    millisecond. The lock is reentrant because a signal handler or finaliser may request an id at any point.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._last = 0

    def new(self, ns: int | None = None) -> str:
        """The next id; `ns` is Unix time in nanoseconds."""
        ms = (time.time_ns() if ns is None else ns) // 1_000_000
        noise = int.from_bytes(os.urandom(10), "big")
        with self._lock:
            self._last = max(self._last + 1, (ms << 12) + (noise >> 62 & 0x3FF))
            head = self._last
        value = (
            (head >> 12 & (1 << 48) - 1) << 80
            | 7 << 76
            | (head & 0xFFF) << 64
            | 2 << 62
            | noise & (1 << 62) - 1
        )
        text = f"{value:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
