"""The sliding window of one machine, exact, shared by its processes through a memory-mapped ring a token.

The ring holds the times of the last `limit` admitted requests. The slot at its head is the oldest of them: a request is
admitted when that is older than the window, and takes its place. So each look is one lock, one read and one write, whatever
the limit; a lock on one byte of a file costs less than a message to a process that would count for all, and a `kill -9`
releases it (measurements: docs/decisions/edge-rate-limit.md).

A ring's room on the disk is taken before it is touched: a hole of a mapped file ends the process where the disk is full.
Where there is no room, or no folder, the process counts in its own memory: our trouble refuses nobody.
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
from typing import Final

from edge.limits.rate_limit import WINDOW_SECONDS

log = logging.getLogger(__name__)

_WINDOW_US: Final = WINDOW_SECONDS * 1_000_000
_WORD: Final = struct.Struct("<Q")
_MOST_OPEN: Final = 2048
_ROOM_STEP: Final = 64 * 1024
"""Bytes of a ring that are taken at once: all of it at the usual limit, not 80 MB where the limit is the highest."""
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


def monotonic_us() -> int:
    """Microseconds of the clock that all processes of a machine share and nobody sets back."""
    return time.monotonic_ns() // 1000


class _Ring:
    """A mapped ring, on the disk at `path` or, where that is None, of this process alone.

    `place` is the byte of the lock file that orders its users; `room` are the bytes from its beginning that may be touched.
    """

    __slots__ = ("path", "place", "room", "slots")

    def __init__(self, slots: mmap.mmap, room: int, path: Path | None = None, place: int = 0) -> None:
        self.slots = slots
        self.room = room
        self.path = path
        self.place = place


class LocalWindow:
    """Rings in `directory`, one a token and limit: a changed limit begins a new window. One thread uses an instance."""

    def __init__(self, directory: Path, now_us: Callable[[], int] = monotonic_us) -> None:
        self._directory = directory / _boot()
        self._now_us = now_us
        self._lock = -1
        self._rings: OrderedDict[tuple[str, int], _Ring] = OrderedDict()
        self._stand_ins: dict[tuple[str, int], int] = {}

    async def acquire(self, token: str, limit: int) -> int:
        """Admit and return 0, or milliseconds until a request is admitted."""
        return self.acquire_now(token, limit)

    def acquire_now(self, token: str, limit: int) -> int:
        """The same without a loop."""
        if limit <= 0:
            return WINDOW_SECONDS * 1000
        if self._stand_ins:
            self._try_disk_again(token, limit)
        ring = self._rings.get((token, limit)) or self._open(token, limit)
        if ring.path is None:
            return self._look(ring, limit)
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX, 1, ring.place)
            try:
                return self._look(ring, limit)
            finally:
                fcntl.lockf(self._lock, fcntl.LOCK_UN, 1, ring.place)
        except OSError as error:
            self._close((token, limit))
            return self._look(self._stand_in(token, limit, error), limit)

    async def close(self) -> None:
        """Unmap and close; the windows stay for the other processes."""
        for ring in self._rings.values():
            ring.slots.close()
        self._rings.clear()
        self._stand_ins.clear()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _look(self, ring: _Ring, limit: int) -> int:
        slots = ring.slots
        now = self._now_us()
        (head,) = _WORD.unpack_from(slots, 0)
        slot = 8 + head % limit * 8
        if slot >= ring.room:
            _reserve_slot(ring, slot, limit)
        (oldest,) = _WORD.unpack_from(slots, slot)
        # 0 is a slot never used: the machine's clock starts at its boot.
        if oldest and now - oldest < _WINDOW_US:
            left_us: int = oldest + _WINDOW_US - now
            return -(-left_us // 1000)
        _WORD.pack_into(slots, slot, now)
        _WORD.pack_into(slots, 0, (head + 1) % limit)
        return 0

    def _open(self, token: str, limit: int) -> _Ring:
        try:
            ring = self._on_disk(token, limit)
        except OSError as error:
            ring = self._stand_in(token, limit, error)
        self._rings[token, limit] = ring
        if len(self._rings) > _MOST_OPEN:
            self._close(next(iter(self._rings)))
        return ring

    def _stand_in(self, token: str, limit: int, error: OSError) -> _Ring:
        if not self._stand_ins:
            log.warning("a rate limit can't be kept on the disk: each worker counts for itself (%s)", error)
        self._stand_ins[token, limit] = self._now_us() + _WINDOW_US
        ring = self._rings[token, limit] = _Ring(mmap.mmap(-1, _size(limit)), _size(limit))
        return ring

    def _try_disk_again(self, token: str, limit: int) -> None:
        """Once a window: the ring in memory goes on counting where the disk still refuses."""
        due = self._stand_ins.get((token, limit))
        if due is None or self._now_us() < due:
            return
        try:
            ring = self._on_disk(token, limit)
        except OSError:
            self._stand_ins[token, limit] = self._now_us() + _WINDOW_US
            return
        self._close((token, limit))
        self._rings[token, limit] = ring
        if not self._stand_ins:
            log.warning("rate limits are kept on the disk again")

    def _close(self, key: tuple[str, int]) -> None:
        self._rings.pop(key).slots.close()
        self._stand_ins.pop(key, None)

    def _on_disk(self, token: str, limit: int) -> _Ring:
        if self._lock < 0:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self._directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        # A name that doesn't show the token: folders end up in listings and backups.
        digest = blake2b(token.encode(), digest_size=12).hexdigest()
        place = int(digest[:7], 16)
        path = self._directory / f"{digest}-{limit}"
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if os.fstat(file).st_size < _size(limit):
                # Growing a sparse file is the same from every process: no lock is needed.
                os.ftruncate(file, _size(limit))
            ring = _Ring(mmap.mmap(file, _size(limit)), 0, path, place)
        finally:
            os.close(file)
        fcntl.lockf(self._lock, fcntl.LOCK_EX, 1, place)
        try:
            _reserve_slot(ring, 0, limit)
        finally:
            fcntl.lockf(self._lock, fcntl.LOCK_UN, 1, place)
        return ring


def _size(limit: int) -> int:
    return 8 + limit * 8


def _reserve_slot(ring: _Ring, slot: int, limit: int) -> None:
    """Make sure of the disk up to `slot`, and a step further. Raises OSError.

    The caller has the ring's lock: for a file system that can't do it libc writes zeros where it just read some.
    """
    assert ring.path is not None
    room = min(slot + _ROOM_STEP, _size(limit))
    # macOS has no such call: good enough to develop on.
    if hasattr(os, "posix_fallocate"):
        file = os.open(ring.path, os.O_RDWR)
        try:
            os.posix_fallocate(file, ring.room, room - ring.room)
        finally:
            os.close(file)
    ring.room = room


def _boot() -> str:
    """A name for this run of the machine: its monotonic clock means nothing in the next."""
    with suppress(OSError):
        return _BOOT_ID.read_text(encoding="ascii").strip()
    return "boot"
