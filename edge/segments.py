"""Files of the spool: how records stand in them, and what can be had of one that is torn or damaged.

A segment is a run of frames: length and CRC-32 of the record, four bytes each, big-endian, then the record. Only finished
frames were ever answered for, so a torn one at the end is left out on reading. No record is empty: a length of 0 is a hole
that a crash or a full disk left, and ends the segment (the CRC-32 of nothing is 0 too).
"""

import logging
import os
import struct
import zlib
from io import FileIO
from pathlib import Path
from typing import Final, NamedTuple

log = logging.getLogger(__name__)

SUFFIX: Final = ".spool"
DAMAGED: Final = ".damaged"
"""Behind the name of a segment that could not be read whole: kept for whoever looks into it, never drained again."""
_NAMES: Final = f"{'[0-9]' * 12}-{'[0-9]' * 13}{SUFFIX}"
_FRAME: Final = struct.Struct(">II")


class Contents(NamedTuple):
    """What a segment gave: its sound records in their order, and how many finished ones fail their checksum."""

    records: list[bytes]
    damaged: int


def frame(record: bytes) -> bytes:
    """A record as it stands in a segment. Raises ValueError for an empty one."""
    if not record:
        raise ValueError("an empty record can't be told from a hole")
    return _FRAME.pack(len(record), zlib.crc32(record)) + record


def read(segment: Path) -> Contents:
    """The records of a segment, up to a torn one at its end. Raises OSError."""
    data = segment.read_bytes()
    found: list[bytes] = []
    damaged = place = 0
    while place + _FRAME.size <= len(data):
        length, checksum = _FRAME.unpack_from(data, place)
        end = place + _FRAME.size + length
        if length == 0 or end > len(data):
            break
        record = data[place + _FRAME.size : end]
        if zlib.crc32(record) == checksum:
            found.append(record)
        else:
            damaged += 1
        place = end
    if place < len(data):
        log.warning("%s: %d bytes at its end were never finished", segment.name, len(data) - place)
    return Contents(found, damaged)


def write_all(file: FileIO, data: bytes) -> None:
    """Write to an unbuffered file, whose writes may be short: what a buffer holds back comes at the wrong time. Raises OSError."""
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def found_in(directory: Path) -> list[Path]:
    """The segments of a folder, oldest first."""
    return sorted(directory.glob(_NAMES))


def name(number: int, created: float) -> str:
    """The file name of a folder's segment, made at `created`, Unix time in seconds."""
    return f"{number:012d}-{int(created * 1000):013d}{SUFFIX}"


def sequence(segment: Path) -> int:
    """A segment's number in its folder."""
    return int(segment.name.split("-")[0])


def created(segment: Path) -> float:
    """Unix time in seconds at which a segment was made."""
    return int(segment.name.removesuffix(SUFFIX).split("-")[1]) / 1000


def adopt(segments: list[Path], directory: Path) -> None:
    """Move segments that another process left into `directory`, behind its own."""
    last = max(map(sequence, found_in(directory)), default=0)
    for number, segment in enumerate(sorted(segments, key=created), last + 1):
        segment.rename(directory / name(number, created(segment)))
    sync_directory(directory)


def sync_directory(directory: Path) -> None:
    """Return when the names in a folder are on the disk. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
