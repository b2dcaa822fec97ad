"""The lock of a data directory, held by the one `svc up` that runs on it."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from local.local_errors import StartError

LOCK = "lock"
ATTEMPTS = 10
PAUSE_SECONDS = 0.1


def _lock(file: TextIO, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def locked(data_dir: Path) -> Iterator[None]:
    """Lock the data directory, creating it if necessary. Raises StartError if another process has locked it."""
    data_dir.mkdir(parents=True, exist_ok=True)
    with (data_dir / LOCK).open("w") as file:
        for attempt in range(ATTEMPTS):
            if _lock(file, fcntl.LOCK_EX):
                break
            # Another process may be calling `is_locked`.
            if attempt < ATTEMPTS - 1:
                time.sleep(PAUSE_SECONDS)
        else:
            raise StartError(
                f"another `svc up` runs on {data_dir}: stop it, or name another directory with --data-dir"
            )
        yield


def is_locked(data_dir: Path) -> bool:
    """True while a process has locked the data directory; its end, even by kill -9, releases the lock."""
    try:
        file = (data_dir / LOCK).open()
    except FileNotFoundError:
        return False
    with file:
        return not _lock(file, fcntl.LOCK_SH)
