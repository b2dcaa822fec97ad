"""Quarantined segments: their names, which contain the reason, and their location.

They stay under `spool/N/` as `*.spool.REASON`. Once everything readable has been sent, the name gets the
suffix `.replayed`. Only `svc spool` reads them.
"""

from collections.abc import Iterator
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Final

from edge.delivery import segments

REPLAYED: Final = ".replayed"


class QuarantineReason(Enum):
    """Why a segment was quarantined; the value is its suffix. If several apply, the first is used."""

    DAMAGED = "damaged"
    """It contains bytes that are not valid records."""
    TOO_LARGE = "too-large"
    """It contains an event that exceeds the topic's size limit."""
    UNFINISHED = "unfinished"
    """It ends with a write that a crash cut off. The write was never acknowledged, so nothing is lost."""

    @property
    def suffix(self) -> str:
        return f".{self.value}"


def quarantined_in(directory: Path) -> list[Path]:
    """A worker's quarantined segments, oldest first, including replayed ones."""
    return sorted(path for path in directory.glob(f"*{segments.SUFFIX}.*") if reason_of(path))


def quarantined_under(root: Path) -> Iterator[Path]:
    """The quarantined segments of all workers, running or not."""
    for directory in sorted(root.glob("[0-9]*")):
        yield from quarantined_in(directory)


def reason_of(path: Path) -> QuarantineReason | None:
    """The reason in a file name; None for any other file."""
    name, _, reason = path.name.removesuffix(REPLAYED).partition(segments.SUFFIX + ".")
    if not segments.is_name(name + segments.SUFFIX):
        return None
    return next((known for known in QuarantineReason if known.value == reason), None)


def is_replayed(path: Path) -> bool:
    """Whether everything readable in it has been sent."""
    return path.name.endswith(REPLAYED)


def segment_name(path: Path) -> Path:
    """Its path before it was quarantined."""
    return path.with_name(path.name.partition(segments.SUFFIX)[0] + segments.SUFFIX)


def adopt(directory: Path, into: Path) -> None:
    """Move quarantined segments to another folder, except those whose name already exists there."""
    for path in quarantined_in(directory):
        if not (into / path.name).exists():
            path.rename(into / path.name)


def quarantined_bytes(directory: Path) -> int:
    """Size of a worker's quarantined segments."""
    total = 0
    for path in quarantined_in(directory):
        # `svc spool` may remove it concurrently.
        with suppress(OSError):
            total += path.stat().st_size
    return total
