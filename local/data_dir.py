"""A data directory belongs to one running `svc up` at a time; who holds its lock is running."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from local.errors import StartError

LOCK = "lock"
ATTEMPTS = 10
PAUSE_SECONDS = 0.1


def _take(file: TextIO, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def held(data_dir: Path) -> Iterator[None]:
    """Hold the data directory, made if need be. Raises StartError where another process holds it."""
    data_dir.mkdir(parents=True, exist_ok=True)
    with (data_dir / LOCK).open("w") as file:
        for attempt in range(ATTEMPTS):
            if _take(file, fcntl.LOCK_EX):
                break
            # Someone may be asking `is_held` just now.
            if attempt < ATTEMPTS - 1:
                time.sleep(PAUSE_SECONDS)
        else:
            raise StartError(
                f"another `svc up` runs on {data_dir}: stop it, or name another directory with --data-dir"
            )
        yield


def is_held(data_dir: Path) -> bool:
    """True while a process holds the data directory; its end, kill -9 included, frees it."""
    try:
        file = (data_dir / LOCK).open()
    except FileNotFoundError:
        return False
    with file:
        return not _take(file, fcntl.LOCK_SH)
