"""One folder a worker for what it keeps on disk, held by a lock that a `kill -9` releases."""

import fcntl
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import BinaryIO

from edge.delivery import quarantine
from edge.delivery.segments import adopt, found_in


class WorkerFolder:
    """A worker's folder under `root`; `number` is the lowest that no living process holds."""

    def __init__(self, root: Path) -> None:
        for number in count():
            directory = root / str(number)
            directory.mkdir(parents=True, exist_ok=True)
            lock = _locked(directory)
            if lock is not None:
                self.number, self.directory, self._lock = number, directory, lock
                return

    def adopt_orphans(self) -> None:
        """Take over the segments of folders that no process holds: workers that were and are no more.

        What they set aside comes too, so that somebody tells of it.
        """
        for directory in _neighbours(self.directory):
            lock = _locked(directory) if found_in(directory) or quarantine.found_in(directory) else None
            if lock is not None:
                with lock:
                    adopt(found_in(directory), self.directory)
                    quarantine.adopt(directory, self.directory)

    def release(self) -> None:
        """Let another process have the folder."""
        self._lock.close()


def _neighbours(directory: Path) -> Iterator[Path]:
    for other in directory.parent.iterdir():
        if other.is_dir() and other != directory:
            yield other


def _locked(directory: Path) -> BinaryIO | None:
    lock = (directory / "lock").open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock
