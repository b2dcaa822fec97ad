"""The edge's disk spool: accepted events are stored here, fsynced, while Kafka is unavailable.

The contract requires it in section 2, point 9. A segment (`edge.delivery.segments`) is written by one process
and never reopened for writing. It is removed when Kafka has acknowledged all of it.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import FileIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

from edge.delivery import segments
from edge.delivery.quarantine import QuarantineReason, quarantined_bytes

log = logging.getLogger(__name__)

SEGMENT_BYTES: Final = 8 * 1024 * 1024
_PROBE_SECONDS: Final = 1.0
"""Interval of test writes after a failed one: while readyz fails, no request writes to the disk."""
_MIN_PROBE_BYTES: Final = 4096
_MAX_PROBE_BYTES: Final = 1024 * 1024


class SpoolFull(Exception):
    """The size or age limit of the spool is reached, or a write failed."""


class Spool:
    """A queue of records on disk, owned by one process and one event loop.

    The caller must have locked `directory` (`edge.delivery.worker_folder`). Records are refused once the
    oldest segment is older than `max_age_seconds`: a spool that hasn't drained for days needs an operator.
    Quarantined segments count toward `max_bytes`.
    """

    def __init__(
        self,
        directory: Path,
        max_bytes: int,
        max_age_seconds: float,
        now: Callable[[], float] | None = None,
    ) -> None:
        self.directory = directory
        self._max_bytes = max_bytes
        self._max_age_seconds = max_age_seconds
        self._now = now or time.time
        self._sealed = segments.segments_in(directory)
        self._sizes = {path: path.stat().st_size for path in self._sealed}
        self._acknowledged: dict[Path, int] = {}
        self._sequence = max(map(segments.sequence, self._sealed), default=0)
        self._current: FileIO | None = None
        self._current_path = directory
        self._current_size = 0
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._committer: asyncio.Task[None] | None = None
        self._prober: asyncio.Task[None] | None = None
        # One thread: writes, seals and removals never overlap.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="spool")
        self.size = sum(self._sizes.values())
        self.too_large_events = 0
        self.quarantined_bytes = quarantined_bytes(directory)
        self._refused = False
        self._probe_bytes = 0
        self.has_segments = asyncio.Event()
        if self._sealed:
            self.has_segments.set()

    @property
    def age_seconds(self) -> float:
        """Age of the oldest segment; 0 if the spool is empty."""
        oldest = self._sealed[0] if self._sealed else self._current_path if self._current else None
        return max(0.0, self._now() - segments.created(oldest)) if oldest else 0.0

    @property
    def full(self) -> bool:
        """Whether records are refused: one was since space was last freed or written, or the next one would be."""
        return self._refused or self._probe_bytes > 0 or self._used >= self._max_bytes or self._too_old

    @property
    def _used(self) -> int:
        return self.size + self.quarantined_bytes

    @property
    def _too_old(self) -> bool:
        return self.age_seconds > self._max_age_seconds

    async def append(self, record: bytes) -> None:
        """Return when a record, which must not be empty, is on disk.

        Concurrent callers share one fsync. Raises SpoolFull.
        """
        frame = segments.frame(record)
        if self._too_old or self._used + len(frame) > self._max_bytes:
            self._refused = True
            raise SpoolFull(f"{self._used} bytes, oldest {self.age_seconds:.0f} s")
        self.size += len(frame)
        written = asyncio.get_running_loop().create_future()
        self._waiting.append((frame, written))
        if self._committer is None:
            self._committer = asyncio.create_task(self._commit())
        await asyncio.shield(written)

    async def seal_oldest(self) -> Path | None:
        """The oldest segment, sealed so that it can be drained; None if the spool is empty."""
        if not self._sealed:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._seal)
        return self._sealed[0] if self._sealed else None

    def acknowledged_bytes(self, segment: Path) -> int:
        """Bytes of a segment that are known to be acknowledged: all that this process has written to it."""
        return self._acknowledged.get(segment, 0)

    async def remove(self, segment: Path) -> None:
        """Remove a segment whose records are all stored elsewhere.

        If the file can't be removed it is drained again after the next start; downstream deduplicates its events.
        """
        await self._forget(segment, segment.unlink)

    async def quarantine(self, segment: Path, reason: QuarantineReason) -> None:
        """Rename a segment, so that it doesn't block the next ones. This needs no disk space."""
        target = segment.with_name(segment.name + reason.suffix)
        await self._forget(segment, lambda: segment.rename(target))
        await self.count_quarantined()

    async def count_quarantined(self) -> None:
        """Measure the quarantine again: `svc spool` may have replayed segments, or an operator removed them.

        A folder that can't be read just now, for want of a file descriptor, keeps its last size.
        """
        loop = asyncio.get_running_loop()
        before = self.quarantined_bytes
        with suppress(OSError):
            self.quarantined_bytes = await loop.run_in_executor(
                self._thread, quarantined_bytes, self.directory
            )
        if self.quarantined_bytes < before:
            self._refused = False

    async def stop(self) -> None:
        """Finish pending writes and close."""
        while self._committer is not None:
            await asyncio.wait([self._committer])
        if self._prober is not None:
            self._prober.cancel()
            await asyncio.wait([self._prober])
        await asyncio.get_running_loop().run_in_executor(self._thread, self._seal)
        self._thread.shutdown()

    async def _forget(self, segment: Path, action: Callable[[], object]) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._thread, action)
            await loop.run_in_executor(self._thread, segments.sync_directory, self.directory)
        except OSError:
            log.exception(
                "can't remove %s from the spool folder",
                segment.name,
                extra={"event": "segment_remove_failed"},
            )
        self._sealed.remove(segment)
        self.size -= self._sizes.pop(segment)
        self._acknowledged.pop(segment, None)
        self._refused = False
        if not self._sealed and self._current is None:
            self.has_segments.clear()

    async def _commit(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            data = b"".join([frame for frame, _ in waiting])
            try:
                await loop.run_in_executor(self._thread, self._write, data)
            except OSError as error:
                self.size -= len(data)
                self._write_failed(error, len(data))
                for _, written in waiting:
                    written.set_exception(SpoolFull(str(error)))
                    written.exception()
            else:
                self._probe_bytes = 0
                self.has_segments.set()
                for _, written in waiting:
                    written.set_result(None)
        self._committer = None

    def _write_failed(self, error: OSError, size: int) -> None:
        if not self._probe_bytes:
            log.warning("can't write to the spool: %s", error, extra={"event": "spool_write_failed"})
        self._probe_bytes = min(max(size, _MIN_PROBE_BYTES), _MAX_PROBE_BYTES)
        if self._prober is None:
            self._prober = asyncio.create_task(self._probe_disk())

    async def _probe_disk(self) -> None:
        loop = asyncio.get_running_loop()
        while self._probe_bytes:
            await asyncio.sleep(_PROBE_SECONDS)
            with suppress(OSError):
                await loop.run_in_executor(self._thread, self._probe, self._probe_bytes)
                self._probe_bytes = 0
        log.warning("writing to the spool works again", extra={"event": "spool_write_recovered"})
        self._prober = None

    def _probe(self, size: int) -> None:
        with TemporaryFile(dir=self.directory, buffering=0) as file:
            # Random bytes: a compressing file system could store zeros on a full disk.
            segments.write_all(file, os.urandom(size))
            os.fsync(file.fileno())

    def _write(self, data: bytes) -> None:
        if self._current_size >= SEGMENT_BYTES:
            self._seal()
        try:
            file = self._current or self._new_segment()
            segments.write_all(file, data)
            os.fsync(file.fileno())
        except OSError:
            self._roll_back()
            raise
        self._current_size += len(data)

    def _new_segment(self) -> FileIO:
        self._sequence += 1
        self._current_path = self.directory / segments.name(self._sequence, self._now())
        # Unbuffered: a buffer would be flushed on close, after the truncation of a failed write.
        self._current = file = FileIO(self._current_path, "x")
        segments.sync_directory(self.directory)
        return file

    def _roll_back(self) -> None:
        """Keep acknowledged records and remove all others; the next record starts a new segment."""
        if self._current is None:
            return
        with suppress(OSError):
            os.ftruncate(self._current.fileno(), self._current_size)
        if self._current_size:
            self._seal()
            return
        # Hours of failing writes must not leave an empty file each.
        with suppress(OSError):
            self._current_path.unlink()
        with suppress(OSError):
            self._current.close()
        self._current = None

    def _seal(self) -> None:
        if self._current is not None:
            with suppress(OSError):
                self._current.close()
            self._sizes[self._current_path] = self._acknowledged[self._current_path] = self._current_size
            self._sealed.append(self._current_path)
            self._current, self._current_size = None, 0
