"""Disk space checks before a server starts and after it ended.

They report a full disk in one line, not a stack trace.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from local.local_errors import StartError

MIN_BYTES: Final = 64 << 20
"""Kafka reserves 10 MB for the index of each new segment, a ClickHouse merge the size of its parts."""
FULL: Final = ("No space left on device", "NOT_ENOUGH_SPACE", "Disk quota exceeded")
_ADVICE: Final = "free space there, or set SVC_DATA_DIR to another disk"

Free = Callable[[Path], int]


class NoDiskSpace(StartError):
    """There is too little disk space to start a server."""


def free_bytes(folder: Path) -> int:
    """The free bytes on the disk of a folder, which may not exist yet. Raises OSError."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    status = os.statvfs(existing)
    return status.f_bavail * status.f_frsize


def require_space(name: str, folder: Path, minimum: int = MIN_BYTES, free: Free = free_bytes) -> None:
    """Raise NoDiskSpace if the disk of a server's data has less than `minimum` free bytes."""
    available = free(folder)
    if available < minimum:
        space = f"{available:,} of {minimum:,} required bytes free on the disk of {folder}"
        raise NoDiskSpace(f"not enough disk space for {name}: {space}; {_ADVICE}")


def full_disk_error(name: str, folder: Path, log_tail: str, free: Free = free_bytes) -> str:
    """One line about a server that ended because its disk is full; empty if the end of its log has another reason."""
    available = free(folder)
    error = next((error for error in FULL if error in log_tail), "")
    if not error and available >= MIN_BYTES:
        return ""
    detail = f" ({error})" if error else ""
    return (
        f"{name} ran out of disk space{detail}: {available:,} bytes free on the disk of {folder}; {_ADVICE}"
    )
