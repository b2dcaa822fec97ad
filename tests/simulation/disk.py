"""A disk that fails: it gets full, a machine's crash tears its writes, and bits flip.

The files are real ones in a separate folder.
"""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from io import FileIO
from pathlib import Path
from typing import Final
from unittest.mock import patch

from edge.delivery import segments
from edge.delivery.quarantine import QuarantineReason, quarantined_in, reason_of
from schemas.chunks import decode_chunk
from tests.simulation.clients import MAX_RECORD
from tests.simulation.world import Process, World

_SYNC_SECONDS: Final = 0.002


class NotKept(Exception):
    """The spool has done something to its files that nothing explains."""


_write_all = segments.write_all


class Disk:
    """The disk under the spool's folder."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world = world
        self.folder = folder
        self.is_full = False
        self.flipped: dict[bytes, str] = {}
        """Ids in records that a flipped bit damaged, with their segment.

        They may be missing until its repair."""
        self.is_damaged = False
        self._synced: dict[int, int] = {}

    def fill(self, seconds: float) -> None:
        """Leave no room for some seconds."""
        self.is_full = True
        self.world.note(f"the disk is full for {seconds:.1f} s")
        self.world.after(seconds, self.free)

    def free(self) -> None:
        """Make room again."""
        self.is_full = False

    def lose_power(self) -> None:
        """Forget, of each file, some of the unsynced bytes. The process must be dead."""
        for path in self._files():
            size, synced = path.stat().st_size, self._synced.get(path.stat().st_ino, 0)
            if size > synced:
                kept = self.world.random.randint(synced, size)
                self.world.note(f"{path.name} loses {size - kept} of {size} bytes")
                os.truncate(path, kept)

    def flip_bit(self) -> None:
        """Flip a bit in some segment."""
        random = self.world.random
        files = [path for path in self._files() if path.stat().st_size]
        if not files:
            return
        path = random.choice(files)
        data = bytearray(path.read_bytes())
        at = random.randrange(len(data))
        begin = 0
        for record in segments.read(path).records:
            # After bytes that another flip damaged: they are no record.
            begin = data.index(segments.frame(record), begin)
            end = begin + segments.size_of(record)
            if begin <= at < end:
                self.flipped |= {event.id: path.name for event in decode_chunk(record)}
            begin = end
        self.is_damaged = True
        data[at] ^= 1 << random.randrange(8)
        self.world.note(f"a bit of {path.name} flips at {at} of {len(data)}")
        with path.open("r+b") as file:
            file.write(data)

    def quarantined(self) -> set[bytes]:
        """The ids that may be missing from storage without being lost.

        They are in quarantine, damaged or too large for Kafka.
        """
        names = [path.name for path in quarantined_in(self.folder)]
        ids = {number for number, name in self.flipped.items() if any(n.startswith(name) for n in names)}
        for path in quarantined_in(self.folder):
            # A segment may be damaged, and also hold an event that is too large.
            events = [event for record in segments.read(path).records for event in decode_chunk(record)]
            ids.update(event.id for event in events if len(event.payload) > MAX_RECORD)
        return ids

    def check_quarantine(self, edges: Iterable[Process]) -> None:
        """Quarantine holds only segments that were damaged, too large or cut off by the end of an edge.

        Raises NotKept.
        """
        wrong = [
            path.name
            for path in quarantined_in(self.folder)
            if reason_of(path) is not QuarantineReason.TOO_LARGE
        ]
        if wrong and not self.is_damaged and not any(edge.was_killed for edge in edges):
            raise NotKept(f"{wrong} are in quarantine")

    def _files(self) -> list[Path]:
        return sorted(path for path in self.folder.iterdir() if segments.is_name(path.name))

    # Called by the product.

    def write_all(self, file: FileIO, data: bytes) -> None:
        """Write, or as much as there is room for."""
        self._take_time()
        if self.is_full:
            _write_all(file, data[: self.world.random.randrange(len(data))])
            raise OSError(errno.ENOSPC, "no space left")
        _write_all(file, data)

    def fsync(self, descriptor: int) -> None:
        """Let the written bytes survive."""
        self._take_time()
        status = os.fstat(descriptor)
        self._synced[status.st_ino] = status.st_size

    def sync_directory(self, directory: Path) -> None:
        """A file's name survives: a folder has no size to lose."""
        self._take_time()

    def _take_time(self) -> None:
        if self.world.fiber is not None:
            self.world.fiber.process.step()
            self.world.sleep(_SYNC_SECONDS * self.world.random.random())
            self.world.fiber.process.step()

    @contextmanager
    def mounted(self) -> Iterator[None]:
        """Put it under the product."""
        names: dict[str, Callable[..., None]] = {
            "edge.delivery.segments.write_all": self.write_all,
            "edge.delivery.segments.sync_directory": self.sync_directory,
            "os.fsync": self.fsync,
        }
        with ExitStack() as stack:
            for name, function in names.items():
                stack.enter_context(patch(name, function))
            yield
