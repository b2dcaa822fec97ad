"""Room on the disk of a local server: looked at before it starts and after it has ended, so that a full disk is one line and no stack trace."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from local.errors import StartError

LEAST_BYTES: Final = 64 << 20
"""Kafka reserves 10 MB for an index of each new segment, ClickHouse's merges a part's size."""
FULL: Final = ("No space left on device", "NOT_ENOUGH_SPACE", "Disk quota exceeded")
_MEND: Final = "make room there, or put SVC_DATA_DIR elsewhere"

Free = Callable[[Path], int]


class NoDiskSpace(StartError):
    """The disk of a server's data has too little room to start it."""


def free_bytes(folder: Path) -> int:
    """What may still be written on the disk of a folder, which needn't be there yet. Raises OSError."""
    place = next(one for one in (folder, *folder.parents) if one.exists())
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize


def require_space(name: str, folder: Path, least: int = LEAST_BYTES, free: Free = free_bytes) -> None:
    """Raise NoRoom where the disk of a server's data has less than `least` bytes."""
    left = free(folder)
    if left < least:
        raise NoDiskSpace(f"no room for {name}: {_told(left, folder)}, {least >> 20} MiB are needed: {_MEND}")


def ended_without_room(name: str, folder: Path, said: str, free: Free = free_bytes) -> str:
    """One line about a server that ended because its disk is full, given the end of its log; empty where that isn't the reason."""
    left = free(folder)
    words = next((word for word in FULL if word in said), "")
    if not words and left >= LEAST_BYTES:
        return ""
    why = f" ({words})" if words else ""
    return f"{name} ended for want of room{why}: {_told(left, folder)}: {_MEND}"


def _told(left: int, folder: Path) -> str:
    return f"{left:,} bytes free on the disk of {folder}"
