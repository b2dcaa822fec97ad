"""The edge's own disk spool: accepted events wait here, fsynced, while Kafka is away (contract, section 2, point 9).

A segment (`edge.delivery.segments`) is written by one process once and never opened for writing again; it is removed when Kafka has
all of it.
"""

import asyncio
import logging
import os
import time
from collections import Counter
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
_LOOK_SECONDS: Final = 1.0
"""How often a disk that refused is tried: while readyz fails nobody else brings a record that would tell."""
_LEAST_TRIED: Final = 4096
_MOST_TRIED: Final = 1024 * 1024


class SpoolFull(Exception):
    """The spool takes no more: its size or age limit is reached, or the disk refuses."""


class Spool:
    """A queue of records on disk, owned by one process and one event loop.

    `directory` must be locked by the caller (`edge.delivery.worker_folder`). `max_age_seconds` is the age of the oldest segment at which more
    is refused: a spool that hasn't drained for days is a fault that someone must see. What is set aside counts as taken.
    """

    def __init__(
        self,
        directory: Path,
        max_bytes: int,
        max_age_seconds: float,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.directory = directory
        self._max_bytes = max_bytes
        self._max_age_seconds = max_age_seconds
        self._now = now
        self._sealed = segments.found_in(directory)
        self._sizes = {path: path.stat().st_size for path in self._sealed}
        self._acknowledged: dict[Path, int] = {}
        self._sequence = max(map(segments.sequence, self._sealed), default=0)
        self._current: FileIO | None = None
        self._current_path = directory
        self._current_size = 0
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._committer: asyncio.Task[None] | None = None
        self._looker: asyncio.Task[None] | None = None
        # One thread: writing, sealing and removing never overlap.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="spool")
        self.size = sum(self._sizes.values())
        self.quarantined: Counter[QuarantineReason] = Counter()
        self.too_large_events = 0
        self.quarantined_bytes = quarantined_bytes(directory)
        self._refusing = False
        self._disk_owes = 0
        self.filled = asyncio.Event()
        if self._sealed:
            self.filled.set()

    @property
    def age_seconds(self) -> float:
        """Age of the oldest segment; 0 when the spool is empty."""
        oldest = self._sealed[0] if self._sealed else self._current_path if self._current else None
        return max(0.0, self._now() - segments.created(oldest)) if oldest else 0.0

    @property
    def full(self) -> bool:
        """Whether records are refused: one was since room was last made or the disk last took one, or the next would be."""
        return self._refusing or self._disk_owes > 0 or self._taken >= self._max_bytes or self._too_old

    @property
    def _taken(self) -> int:
        return self.size + self.quarantined_bytes

    @property
    def _too_old(self) -> bool:
        return self.age_seconds > self._max_age_seconds

    async def append(self, record: bytes) -> None:
        """Return when the record, which is not empty, is on the disk. Raises SpoolFull. Many callers share one fsync."""
        frame = segments.frame(record)
        if self._too_old or self._taken + len(frame) > self._max_bytes:
            self._refusing = True
            raise SpoolFull(f"{self._taken} bytes, oldest {self.age_seconds:.0f} s")
        self.size += len(frame)
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((frame, done))
        if self._committer is None:
            self._committer = asyncio.create_task(self._commit())
        await asyncio.shield(done)

    async def oldest(self) -> Path | None:
        """The oldest segment, sealed so that it can be drained, or None."""
        if not self._sealed:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._seal)
        return self._sealed[0] if self._sealed else None

    def acknowledged_bytes(self, segment: Path) -> int:
        """Bytes of a segment that are known to have been answered for: all that this process has written into it."""
        return self._acknowledged.get(segment, 0)

    async def remove(self, segment: Path) -> None:
        """Forget a segment whose records are all safe elsewhere.

        One that the disk doesn't let go of comes again after the next start; its events are dropped downstream by their ids.
        """
        await self._forget(segment, segment.unlink)

    async def keep(self, segment: Path, reason: QuarantineReason) -> None:
        """Set a segment aside under another name, so that those behind it get their turn. That needs no room."""
        self.quarantined[reason] += 1
        kept = segment.with_name(segment.name + reason.suffix)
        await self._forget(segment, lambda: segment.rename(kept))
        await self.count_quarantined()

    async def count_quarantined(self) -> None:
        """Look how much is set aside: a person may have replayed or removed it."""
        loop = asyncio.get_running_loop()
        before = self.quarantined_bytes
        self.quarantined_bytes = await loop.run_in_executor(self._thread, quarantined_bytes, self.directory)
        if self.quarantined_bytes < before:
            self._refusing = False

    async def stop(self) -> None:
        """Finish what is being written and close."""
        while self._committer is not None:
            await asyncio.wait([self._committer])
        if self._looker is not None:
            self._looker.cancel()
            await asyncio.wait([self._looker])
        await asyncio.get_running_loop().run_in_executor(self._thread, self._seal)
        self._thread.shutdown()

    async def _forget(self, segment: Path, let_go: Callable[[], object]) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._thread, let_go)
            await loop.run_in_executor(self._thread, segments.sync_directory, self.directory)
        except OSError:
            log.exception("%s can't be taken out of the spool's folder", segment.name)
        self._sealed.remove(segment)
        self.size -= self._sizes.pop(segment)
        self._acknowledged.pop(segment, None)
        self._refusing = False
        if not self._sealed and self._current is None:
            self.filled.clear()

    async def _commit(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            data = b"".join([frame for frame, _ in waiting])
            try:
                await loop.run_in_executor(self._thread, self._write, data)
            except OSError as error:
                self.size -= len(data)
                self._disk_refused(error, len(data))
                for _, done in waiting:
                    done.set_exception(SpoolFull(str(error)))
                    done.exception()
            else:
                self._disk_owes = 0
                self.filled.set()
                for _, done in waiting:
                    done.set_result(None)
        self._committer = None

    def _disk_refused(self, error: OSError, size: int) -> None:
        if not self._disk_owes:
            log.warning("the spool can't be written: %s", error)
        self._disk_owes = min(max(size, _LEAST_TRIED), _MOST_TRIED)
        if self._looker is None:
            self._looker = asyncio.create_task(self._look_for_room())

    async def _look_for_room(self) -> None:
        loop = asyncio.get_running_loop()
        while self._disk_owes:
            await asyncio.sleep(_LOOK_SECONDS)
            with suppress(OSError):
                await loop.run_in_executor(self._thread, self._try, self._disk_owes)
                self._disk_owes = 0
        log.warning("the spool can be written again")
        self._looker = None

    def _try(self, size: int) -> None:
        with TemporaryFile(dir=self.directory, buffering=0) as file:
            # Random: a file system that compresses would find room for zeros on any disk.
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
        # Unbuffered: a buffer would be written on closing, behind what was taken back.
        self._current = file = FileIO(self._current_path, "x")
        segments.sync_directory(self.directory)
        return file

    def _roll_back(self) -> None:
        """What was promised stays, what wasn't goes; the next record gets a fresh segment."""
        if self._current is None:
            return
        with suppress(OSError):
            os.ftruncate(self._current.fileno(), self._current_size)
        if self._current_size:
            self._seal()
            return
        # A disk that refuses for hours must not be given a file with each try.
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
