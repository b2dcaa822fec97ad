"""Segments that were set aside: the names that say why, and where they are.

They lie beside the others under `spool/N/`, as `*.spool.REASON`; `.replayed` behind that means that all that could be had of one has
been sent since. The edge never reads them again: `svc spool` does.
"""

from collections.abc import Iterator
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Final

from edge.delivery import segments

REPLAYED: Final = ".replayed"


class QuarantineReason(Enum):
    """Why a segment was set aside; the value is the end of its name. Where several hold, the first."""

    DAMAGED = "damaged"
    """Bytes of it are no sound records."""
    TOO_LARGE = "too-large"
    """An event in it is larger than the topic takes."""
    UNFINISHED = "unfinished"
    """It ends with a write that a crash cut off: nobody was answered for that, so nothing is lost."""

    @property
    def suffix(self) -> str:
        """What is put behind the segment's name."""
        return f".{self.value}"


def found_in(directory: Path) -> list[Path]:
    """A worker's segments that were set aside, oldest first, those that were replayed included."""
    return sorted(path for path in directory.glob(f"*{segments.SUFFIX}.*") if reason_of(path))


def found_under(root: Path) -> Iterator[Path]:
    """The same of all workers, living or not."""
    for directory in sorted(root.glob("[0-9]*")):
        yield from found_in(directory)


def reason_of(path: Path) -> QuarantineReason | None:
    """Why a file was set aside; None for any other file."""
    name, _, reason = path.name.removesuffix(REPLAYED).partition(segments.SUFFIX + ".")
    if not segments.is_name(name + segments.SUFFIX) or reason not in {
        each.value for each in QuarantineReason
    }:
        return None
    return QuarantineReason(reason)


def is_replayed(path: Path) -> bool:
    """Whether all that can be had of it has been sent."""
    return path.name.endswith(REPLAYED)


def segment_name(path: Path) -> Path:
    """The path that it had as a segment."""
    return path.with_name(path.name.partition(segments.SUFFIX)[0] + segments.SUFFIX)


def adopt(directory: Path, into: Path) -> None:
    """Move what was set aside from one folder to another; one whose name is taken there stays."""
    for path in found_in(directory):
        if not (into / path.name).exists():
            path.rename(into / path.name)


def quarantined_bytes(directory: Path) -> int:
    """Bytes of what was set aside in a worker's folder."""
    total = 0
    for path in found_in(directory):
        # Somebody may be removing them.
        with suppress(OSError):
            total += path.stat().st_size
    return total
