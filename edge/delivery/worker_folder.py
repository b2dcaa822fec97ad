"""The data folder of a worker, with a lock that a `kill -9` releases."""

import fcntl
from itertools import count
from pathlib import Path
from typing import BinaryIO

from edge.delivery import quarantine
from edge.delivery.segments import adopt, segments_in


class WorkerFolder:
    """A worker's folder under `root`; `number` is the lowest that no running process has locked."""

    def __init__(self, root: Path) -> None:
        for number in count():
            directory = root / str(number)
            directory.mkdir(parents=True, exist_ok=True)
            lock = _lock(directory)
            if lock is not None:
                self.number, self.directory, self._lock = number, directory, lock
                return

    def adopt_orphans(self) -> None:
        """Take over the segments of folders that no process has locked, left by ended workers.

        Quarantined segments are included, so that they are reported.
        """
        for directory in self.directory.parent.iterdir():
            if not directory.is_dir() or directory == self.directory:
                continue
            if not (segments_in(directory) or quarantine.quarantined_in(directory)):
                continue
            lock = _lock(directory)
            if lock is not None:
                with lock:
                    adopt(segments_in(directory), self.directory)
                    quarantine.adopt(directory, self.directory)

    def release(self) -> None:
        self._lock.close()


def _lock(directory: Path) -> BinaryIO | None:
    lock = (directory / "lock").open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock
