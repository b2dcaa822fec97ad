"""The edge's own disk spool: accepted events wait here, fsynced, while Kafka is away (contract, section 2, point 9).

A segment file is a run of frames: length and CRC-32 of the record, four bytes each, big-endian, then the record. Only
finished frames were ever answered for, so a torn one at the end of a segment is left out on reading. A segment is written by
one process once and never opened for writing again; it is removed when Kafka has all of it.
"""

import asyncio
import logging
import os
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

log = logging.getLogger(__name__)

SEGMENT_BYTES: Final = 8 * 1024 * 1024
SUFFIX: Final = ".spool"
_FRAME: Final = struct.Struct(">II")


class SpoolFull(Exception):
    """The spool takes no more: its size or age limit is reached, or the disk refuses."""


class Spool:
    """A queue of records on disk, owned by one process and one event loop.

    `directory` must be locked by the caller (`edge.slots`). `max_age_seconds` is the age of the oldest segment at which more
    is refused: a spool that hasn't drained for days is a fault that someone must see.
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
        self._sealed: list[Path] = sorted(directory.glob(f"*{SUFFIX}"))
        self._sequence = max((_sequence(path) for path in self._sealed), default=0)
        self._current: BinaryIO | None = None
        self._current_path: Path | None = None
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._committer: asyncio.Task[None] | None = None
        # One thread: writing, sealing and removing never overlap.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="spool")
        self.size = sum(path.stat().st_size for path in self._sealed)
        self._refusing = False
        self.filled = asyncio.Event()
        if self._sealed:
            self.filled.set()

    @property
    def age_seconds(self) -> float:
        """Age of the oldest segment; 0 when the spool is empty."""
        oldest = self._sealed[0] if self._sealed else self._current_path
        return max(0.0, self._now() - _created(oldest)) if oldest else 0.0

    @property
    def full(self) -> bool:
        """Whether records are refused: one was since room was last made, or the next would be."""
        return self._refusing or self.size >= self._max_bytes or self._too_old

    @property
    def _too_old(self) -> bool:
        return self.age_seconds > self._max_age_seconds

    async def append(self, record: bytes) -> None:
        """Return when the record is on the disk. Raises SpoolFull. Many callers share one fsync."""
        frame = _FRAME.pack(len(record), zlib.crc32(record)) + record
        if self._too_old or self.size + len(frame) > self._max_bytes:
            self._refusing = True
            raise SpoolFull(f"{self.size} bytes, oldest {self.age_seconds:.0f} s")
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

    async def remove(self, segment: Path) -> None:
        """Forget a segment whose records are all safe elsewhere."""
        loop = asyncio.get_running_loop()
        freed = await loop.run_in_executor(self._thread, self._unlink, segment)
        self._sealed.remove(segment)
        self.size -= freed
        self._refusing = False
        if not self._sealed and self._current is None:
            self.filled.clear()

    async def stop(self) -> None:
        """Finish what is being written and close."""
        while self._committer is not None:
            await asyncio.wait([self._committer])
        await asyncio.get_running_loop().run_in_executor(self._thread, self._seal)
        self._thread.shutdown()

    async def _commit(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            frames = [frame for frame, _ in waiting]
            try:
                await loop.run_in_executor(self._thread, self._write, frames)
            except OSError as error:
                log.warning("the spool can't be written: %s", error)
                self.size -= sum(map(len, frames))
                for _, done in waiting:
                    done.set_exception(SpoolFull(str(error)))
                    done.exception()
            else:
                self.filled.set()
                for _, done in waiting:
                    done.set_result(None)
        self._committer = None

    def _write(self, frames: list[bytes]) -> None:
        if self._current is not None and self._current.tell() >= SEGMENT_BYTES:
            self._seal()
        file = self._current or self._new_segment()
        start = file.tell()
        try:
            file.write(b"".join(frames))
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            # What was promised stays, what wasn't goes; the next record gets a fresh segment.
            with suppress(OSError):
                os.ftruncate(file.fileno(), start)
            self._seal()
            raise

    def _new_segment(self) -> BinaryIO:
        self._sequence += 1
        path = self.directory / f"{self._sequence:012d}-{int(self._now() * 1000):013d}{SUFFIX}"
        file = path.open("xb")
        _sync_directory(self.directory)
        self._current, self._current_path = file, path
        return file

    def _seal(self) -> None:
        if self._current is not None and self._current_path is not None:
            with suppress(OSError):
                self._current.close()
            self._sealed.append(self._current_path)
            self._current = self._current_path = None

    def _unlink(self, segment: Path) -> int:
        size = segment.stat().st_size
        segment.unlink()
        _sync_directory(self.directory)
        return size


def records(segment: Path) -> Iterator[bytes]:
    """The records of a segment in the order in which they came, up to a torn one at its end."""
    data = segment.read_bytes()
    place = 0
    while place + _FRAME.size <= len(data):
        length, checksum = _FRAME.unpack_from(data, place)
        record = data[place + _FRAME.size : place + _FRAME.size + length]
        if len(record) < length or zlib.crc32(record) != checksum:
            break
        yield record
        place += _FRAME.size + length
    if place < len(data):
        log.warning("%s: %d bytes at its end were never finished", segment.name, len(data) - place)


def adopt(segments: list[Path], directory: Path) -> None:
    """Move segments that another process left into `directory`, behind its own."""
    own = [_sequence(path) for path in directory.glob(f"*{SUFFIX}")]
    for sequence, segment in enumerate(sorted(segments, key=_created), max(own, default=0) + 1):
        segment.rename(directory / f"{sequence:012d}-{segment.name.split('-')[1]}")
    _sync_directory(directory)


def _sequence(segment: Path) -> int:
    return int(segment.name.split("-")[0])


def _created(segment: Path) -> float:
    return int(segment.name.removesuffix(SUFFIX).split("-")[1]) / 1000


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
