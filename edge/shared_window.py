"""The sliding window of one machine, exact, shared by its processes through a memory-mapped ring a token.

The ring holds the times of the last `limit` admitted requests. The slot at its head is the oldest of them: a request is
admitted when that is older than the window, and takes its place. So each look is one lock, one read and one write, whatever
the limit; a lock on one byte of a file costs less than a message to a process that would count for all, and a `kill -9`
releases it (measurements: docs/decisions/edge-rate-limit.md).
"""

import fcntl
import mmap
import os
import struct
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final

from edge.ratelimit import WINDOW_SECONDS

_WINDOW_US: Final = WINDOW_SECONDS * 1_000_000
_WORD: Final = struct.Struct("<Q")
_MOST_OPEN: Final = 2048
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


def monotonic_us() -> int:
    """Microseconds of the clock that all processes of a machine share and nobody sets back."""
    return time.monotonic_ns() // 1000


class SharedWindow:
    """Rings in `directory`, one a token and limit: a changed limit begins a new window. One thread uses an instance."""

    def __init__(self, directory: Path, now_us: Callable[[], int] = monotonic_us) -> None:
        self._directory = directory / _boot()
        self._directory.mkdir(parents=True, exist_ok=True)
        self._now_us = now_us
        self._lock = os.open(self._directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        self._rings: OrderedDict[tuple[str, int], tuple[mmap.mmap, int]] = OrderedDict()

    async def take(self, token: str, limit: int) -> int:
        """Admit and return 0, or milliseconds until a request is admitted."""
        return self.take_now(token, limit)

    def take_now(self, token: str, limit: int) -> int:
        """The same without a loop."""
        if limit <= 0:
            return WINDOW_SECONDS * 1000
        ring, place = self._rings.get((token, limit)) or self._open(token, limit)
        fcntl.lockf(self._lock, fcntl.LOCK_EX, 1, place)
        try:
            now = self._now_us()
            (head,) = _WORD.unpack_from(ring, 0)
            slot = 8 + head % limit * 8
            (oldest,) = _WORD.unpack_from(ring, slot)
            # 0 is a slot never used: the machine's clock starts at its boot.
            if oldest and now - oldest < _WINDOW_US:
                left_us: int = oldest + _WINDOW_US - now
                return -(-left_us // 1000)
            _WORD.pack_into(ring, slot, now)
            _WORD.pack_into(ring, 0, (head + 1) % limit)
        finally:
            fcntl.lockf(self._lock, fcntl.LOCK_UN, 1, place)
        return 0

    async def close(self) -> None:
        """Unmap and close; the windows stay for the other processes."""
        for ring, _ in self._rings.values():
            ring.close()
        self._rings.clear()
        os.close(self._lock)

    def _open(self, token: str, limit: int) -> tuple[mmap.mmap, int]:
        # A name that doesn't show the token: folders end up in listings and backups.
        digest = blake2b(token.encode(), digest_size=12).hexdigest()
        file = os.open(self._directory / f"{digest}-{limit}", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            size = 8 + limit * 8
            # Growing a sparse file is the same from every process: no lock is needed.
            if os.fstat(file).st_size != size:
                os.ftruncate(file, size)
            ring = mmap.mmap(file, size)
        finally:
            os.close(file)
        opened = self._rings[token, limit] = ring, int(digest[:7], 16)
        if len(self._rings) > _MOST_OPEN:
            self._rings.popitem(last=False)[1][0].close()
        return opened


def _boot() -> str:
    """A name for this run of the machine: its monotonic clock means nothing in the next."""
    with suppress(OSError):
        return _BOOT_ID.read_text(encoding="ascii").strip()
    return "boot"
