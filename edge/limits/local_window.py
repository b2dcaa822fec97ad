"""The rate limit: a sliding window of 60 s per token that counts admitted requests only.

The contract defines it in section 2, point 11. This implementation is exact for one machine: its processes
share a memory-mapped ring per token with the times of the last `limit` admitted requests. The slot at the
head is the oldest one. A request is admitted if that slot is older than the window, and replaces it. Each
check is one lock, one read and one write, whatever the limit. A lock on one byte of a file costs less than a
message to a central process, and a `kill -9` releases it (measurements: docs/decisions/edge.md).

Disk space of a ring is allocated before it is touched: writing to a hole of a mapped file kills the process
if the disk is full. Without disk space, or without a folder, the process counts in its own memory: our
failures refuse no request.
"""

import fcntl
import logging
import mmap
import os
import struct
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple, Protocol

log = logging.getLogger(__name__)

WINDOW_SECONDS: Final = 60
_WINDOW_US: Final = WINDOW_SECONDS * 1_000_000
_WORD: Final = struct.Struct("<Q")
_MAX_OPEN: Final = 2048
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


class RateLimiter(Protocol):
    """Admits or refuses requests."""

    async def acquire(self, token: str, limit: int) -> int:
        """Admit a request of a token with `limit` requests per window.

        Returns 0 if the request is admitted, else the milliseconds until a retry can succeed.
        """

    async def close(self) -> None:
        """Close files and connections."""


def monotonic_us() -> int:
    """Microseconds of the monotonic clock, which all processes of a machine share."""
    return time.monotonic_ns() // 1000


class _Ring(NamedTuple):
    """A mapped ring, and its byte in the lock file.

    One that isn't shared, because of a failure, is used until `private_until` (microseconds); others have 0.
    """

    slots: mmap.mmap
    lock_byte: int = 0
    private_until: int = 0


class LocalWindow:
    """Rings in `directory`, one per token and limit: a changed limit starts a new window. Not thread-safe."""

    def __init__(self, directory: Path, now_us: Callable[[], int] = monotonic_us) -> None:
        self._directory = directory / _boot()
        self._now_us = now_us
        self._lock = -1
        self._rings: OrderedDict[tuple[str, int], _Ring] = OrderedDict()

    async def acquire(self, token: str, limit: int) -> int:
        """Admit and return 0, or milliseconds until a retry can succeed."""
        if limit <= 0:
            return WINDOW_SECONDS * 1000
        ring = self._rings.get((token, limit))
        if ring is None or 0 < ring.private_until <= self._now_us():
            ring = self._open(token, limit)
        if ring.private_until:
            return self._check(ring.slots, limit)
        fcntl.lockf(self._lock, fcntl.LOCK_EX, 1, ring.lock_byte)
        try:
            return self._check(ring.slots, limit)
        finally:
            fcntl.lockf(self._lock, fcntl.LOCK_UN, 1, ring.lock_byte)

    async def close(self) -> None:
        """Unmap and close the files, which other processes may still use."""
        for ring in self._rings.values():
            ring.slots.close()
        self._rings.clear()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _check(self, slots: mmap.mmap, limit: int) -> int:
        now = self._now_us()
        (head,) = _WORD.unpack_from(slots, 0)
        slot = 8 + head % limit * 8
        (oldest,) = _WORD.unpack_from(slots, slot)
        # 0 is an unused slot: the monotonic clock starts at boot.
        if oldest and now - oldest < _WINDOW_US:
            wait_us: int = oldest + _WINDOW_US - now
            return -(-wait_us // 1000)
        _WORD.pack_into(slots, slot, now)
        _WORD.pack_into(slots, 0, (head + 1) % limit)
        return 0

    def _open(self, token: str, limit: int) -> _Ring:
        size = 8 + limit * 8
        try:
            ring = self._map(token, limit, size)
        except OSError as error:
            if not any(known.private_until for known in self._rings.values()):
                log.warning(
                    "can't store a rate limit on disk: each worker counts for itself (%s)",
                    error,
                    extra={"event": "rate_limit_disk_failed"},
                )
            ring = _Ring(mmap.mmap(-1, size), private_until=self._now_us() + _WINDOW_US)
        self._rings[token, limit] = ring
        if len(self._rings) > _MAX_OPEN:
            _, oldest = self._rings.popitem(last=False)
            oldest.slots.close()
        return ring

    def _map(self, token: str, limit: int, size: int) -> _Ring:
        if self._lock < 0:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self._directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        # The name must not reveal the token: folders end up in listings and backups.
        digest = blake2b(token.encode(), digest_size=12).hexdigest()
        lock_byte = int(digest[:7], 16)
        file = os.open(self._directory / f"{digest}-{limit}", os.O_RDWR | os.O_CREAT, 0o600)
        # Under the lock: on a file system without support libc writes back the bytes that it has read.
        fcntl.lockf(self._lock, fcntl.LOCK_EX, 1, lock_byte)
        try:
            os.ftruncate(file, size)
            # macOS doesn't have it, but is only used for development.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file, 0, size)
            return _Ring(mmap.mmap(file, size), lock_byte)
        finally:
            fcntl.lockf(self._lock, fcntl.LOCK_UN, 1, lock_byte)
            os.close(file)


def _boot() -> str:
    """An id of this boot of the machine: its monotonic times are meaningless after the next."""
    with suppress(OSError):
        return _BOOT_ID.read_text(encoding="ascii").strip()
    return "boot"
