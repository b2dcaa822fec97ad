"""The rate limit: a sliding window of 60 s per token that counts admitted requests only.

The contract defines it in section 2, point 11. This implementation is exact for one machine: its processes
share a memory-mapped ring per token with the times of the last `limit` admitted requests. The slot at the
head is the oldest one. A request is admitted if that slot is older than the window, and replaces it. Each
check is one lock, one read and one write, whatever the limit. A lock on one byte of a file costs less than a
message to a central process, and a `kill -9` releases it (measurements: docs/decisions/edge-intake.md).

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
from typing import Final, Protocol

log = logging.getLogger(__name__)

WINDOW_SECONDS: Final = 60
_WINDOW_US: Final = WINDOW_SECONDS * 1_000_000
_WORD: Final = struct.Struct("<Q")
_MAX_OPEN: Final = 2048
_ALLOCATION_BYTES: Final = 64 * 1024
"""Step by which a ring's disk space is allocated: all of it at the usual limit, not 80 MB at the highest limit."""
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


class _Ring:
    """A mapped ring, shared at `path`, or private to this process if that is None.

    `lock_byte` is its byte in the lock file; the first `allocated` bytes may be touched.
    """

    __slots__ = ("allocated", "lock_byte", "path", "slots")

    def __init__(
        self, slots: mmap.mmap, allocated: int, path: Path | None = None, lock_byte: int = 0
    ) -> None:
        self.slots = slots
        self.allocated = allocated
        self.path = path
        self.lock_byte = lock_byte


class LocalWindow:
    """Rings in `directory`, one per token and limit: a changed limit starts a new window. Not thread-safe."""

    def __init__(self, directory: Path, now_us: Callable[[], int] = monotonic_us) -> None:
        self._directory = directory / _boot()
        self._now_us = now_us
        self._lock = -1
        self._rings: OrderedDict[tuple[str, int], _Ring] = OrderedDict()
        self._fallbacks: dict[tuple[str, int], int] = {}

    async def acquire(self, token: str, limit: int) -> int:
        """Admit and return 0, or milliseconds until a retry can succeed."""
        if limit <= 0:
            return WINDOW_SECONDS * 1000
        if self._fallbacks:
            self._retry_disk(token, limit)
        ring = self._rings.get((token, limit)) or self._open(token, limit)
        if ring.path is None:
            return self._check(ring, limit)
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX, 1, ring.lock_byte)
            try:
                return self._check(ring, limit)
            finally:
                fcntl.lockf(self._lock, fcntl.LOCK_UN, 1, ring.lock_byte)
        except OSError as error:
            self._close((token, limit))
            return self._check(self._fall_back(token, limit, error), limit)

    async def close(self) -> None:
        """Unmap and close the files, which other processes may still use."""
        for ring in self._rings.values():
            ring.slots.close()
        self._rings.clear()
        self._fallbacks.clear()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _check(self, ring: _Ring, limit: int) -> int:
        slots = ring.slots
        now = self._now_us()
        (head,) = _WORD.unpack_from(slots, 0)
        slot = 8 + head % limit * 8
        if slot >= ring.allocated:
            _allocate(ring, slot, limit)
        (oldest,) = _WORD.unpack_from(slots, slot)
        # 0 is an unused slot: the monotonic clock starts at boot.
        if oldest and now - oldest < _WINDOW_US:
            wait_us: int = oldest + _WINDOW_US - now
            return -(-wait_us // 1000)
        _WORD.pack_into(slots, slot, now)
        _WORD.pack_into(slots, 0, (head + 1) % limit)
        return 0

    def _open(self, token: str, limit: int) -> _Ring:
        try:
            ring = self._map(token, limit)
        except OSError as error:
            ring = self._fall_back(token, limit, error)
        self._rings[token, limit] = ring
        if len(self._rings) > _MAX_OPEN:
            self._close(next(iter(self._rings)))
        return ring

    def _fall_back(self, token: str, limit: int, error: OSError) -> _Ring:
        if not self._fallbacks:
            log.warning(
                "can't store a rate limit on disk: each worker counts for itself (%s)",
                error,
                extra={"event": "rate_limit_disk_failed"},
            )
        self._fallbacks[token, limit] = self._now_us() + _WINDOW_US
        ring = self._rings[token, limit] = _Ring(mmap.mmap(-1, _size(limit)), _size(limit))
        return ring

    def _retry_disk(self, token: str, limit: int) -> None:
        """Retry once per window; until it succeeds the ring in memory counts on."""
        retry_at = self._fallbacks.get((token, limit))
        if retry_at is None or self._now_us() < retry_at:
            return
        try:
            ring = self._map(token, limit)
        except OSError:
            self._fallbacks[token, limit] = self._now_us() + _WINDOW_US
            return
        self._close((token, limit))
        self._rings[token, limit] = ring
        if not self._fallbacks:
            log.warning("rate limits are stored on disk again", extra={"event": "rate_limit_disk_recovered"})

    def _close(self, key: tuple[str, int]) -> None:
        self._rings.pop(key).slots.close()
        self._fallbacks.pop(key, None)

    def _map(self, token: str, limit: int) -> _Ring:
        if self._lock < 0:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self._directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        # The name must not reveal the token: folders end up in listings and backups.
        digest = blake2b(token.encode(), digest_size=12).hexdigest()
        lock_byte = int(digest[:7], 16)
        path = self._directory / f"{digest}-{limit}"
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if os.fstat(file).st_size < _size(limit):
                # Every process grows the sparse file to the same size: no lock is needed.
                os.ftruncate(file, _size(limit))
            ring = _Ring(mmap.mmap(file, _size(limit)), 0, path, lock_byte)
        finally:
            os.close(file)
        fcntl.lockf(self._lock, fcntl.LOCK_EX, 1, lock_byte)
        try:
            _allocate(ring, 0, limit)
        finally:
            fcntl.lockf(self._lock, fcntl.LOCK_UN, 1, lock_byte)
        return ring


def _size(limit: int) -> int:
    return 8 + limit * 8


def _allocate(ring: _Ring, slot: int, limit: int) -> None:
    """Allocate disk space up to `slot`, and one step more. Raises OSError.

    The caller holds the ring's lock: on a file system without support libc writes back the bytes that it has read.
    """
    assert ring.path is not None
    allocated = min(slot + _ALLOCATION_BYTES, _size(limit))
    # macOS doesn't have it, but is only used for development.
    if hasattr(os, "posix_fallocate"):
        file = os.open(ring.path, os.O_RDWR)
        try:
            os.posix_fallocate(file, ring.allocated, allocated - ring.allocated)
        finally:
            os.close(file)
    ring.allocated = allocated


def _boot() -> str:
    """An id of this boot of the machine: its monotonic times are meaningless after the next."""
    with suppress(OSError):
        return _BOOT_ID.read_text(encoding="ascii").strip()
    return "boot"
