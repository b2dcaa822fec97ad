"""Files of the spool: how records stand in them, and what can be had of one that is torn or damaged.

A segment is a run of frames: length and CRC-32 of the record, four bytes each, big-endian, then the record. No record is
empty: a length of 0 is a hole that a crash or a full disk left (the CRC-32 of nothing is 0 too). Behind bytes that are no
sound frame, reading goes on at the next one. Bytes are never thrown away: whatever else stands in a segment than sound frames
keeps it from being removed.
"""

import os
import re
import struct
import zlib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from io import FileIO
from pathlib import Path
from typing import Final, NamedTuple

SUFFIX: Final = ".spool"
_NAMES: Final = f"{'[0-9]' * 12}-{'[0-9]' * 13}{SUFFIX}"
_FRAME: Final = struct.Struct(">II")
_LONGEST: Final = 1 << 24
"""Bytes of the longest record that is looked for behind damage: far more than Kafka takes."""
_LENGTHS: Final = re.compile(rb"\0(?!\0\0\0)").finditer
"""Where such a length may stand: a search is far quicker than a look at every place, most of all in a hole of zeros."""


class SegmentContents(NamedTuple):
    """What a segment gave: its sound records in their order, and the bytes that are none.

    `damaged` are bytes of records that were finished, so they may have been answered for. `unfinished` are bytes at the end that
    look like a write that a crash cut off, for which nobody was answered.
    """

    records: list[bytes]
    damaged: int
    unfinished: int


def frame(record: bytes) -> bytes:
    """A record as it stands in a segment. Raises ValueError for an empty one."""
    if not record:
        raise ValueError("an empty record can't be told from a hole")
    return _FRAME.pack(len(record), zlib.crc32(record)) + record


def size_of(record: bytes) -> int:
    """Bytes that a record takes in a segment."""
    return _FRAME.size + len(record)


def read(segment: Path) -> SegmentContents:
    """All sound records of a segment. Raises OSError."""
    return parse(segment.read_bytes())


def parse(data: bytes) -> SegmentContents:
    """All sound records of a segment's bytes."""
    found: list[bytes] = []
    damaged = offset = 0
    while offset < len(data):
        record = _record_at(data, offset)
        if record is not None:
            found.append(record)
            offset += size_of(record)
            continue
        following = _next_valid(data, offset)
        if following is None:
            if _was_finished(data, offset):
                return SegmentContents(found, damaged + len(data) - offset, 0)
            return SegmentContents(found, damaged, len(data) - offset)
        damaged += following - offset
        offset = following
    return SegmentContents(found, damaged, 0)


def _record_at(data: bytes, offset: int) -> bytes | None:
    """The sound record whose frame begins at `offset`."""
    if offset + _FRAME.size > len(data):
        return None
    length, checksum = _FRAME.unpack_from(data, offset)
    end = offset + _FRAME.size + length
    if length == 0 or end > len(data) or zlib.crc32(memoryview(data)[offset + _FRAME.size : end]) != checksum:
        return None
    return data[offset + _FRAME.size : end]


def _next_valid(data: bytes, damaged: int) -> int | None:
    """Where the first sound frame behind a damaged one begins, or the end behind a whole damaged one.

    Where a sound one or the end of the segment stands at the place to which the damaged frame's length leads, that length is most
    likely right. What looks like a frame before that place belongs to the damaged record then, unless sound frames lead from it to
    exactly that place.
    """
    end = damaged + _FRAME.size + _length_at(data, damaged)
    is_right = end == len(data) or _record_at(data, end) is not None
    if is_right and end > damaged + _FRAME.size:
        return next(
            (offset for offset in _valid_frames(data, damaged, end) if _leads_to(data, offset, end)), end
        )
    return next(_valid_frames(data, damaged, len(data)), None)


def _valid_frames(data: bytes, damaged: int, end: int) -> Iterator[int]:
    """Where sound frames begin behind `damaged` and before `end`."""
    for match in _LENGTHS(data, damaged + 1, end):
        offset: int = match.start()
        if _is_plausible(data, offset) and _record_at(data, offset) is not None:
            yield offset


def _leads_to(data: bytes, offset: int, end: int) -> bool:
    """Whether sound frames, one behind the other, go from `offset` to exactly `end`."""
    while offset < end and (record := _record_at(data, offset)) is not None:
        offset += size_of(record)
    return offset == end


def _is_plausible(data: bytes, offset: int) -> bool:
    """Whether a frame may begin here, judged by its length and by that of the frame behind it: cheaper than checksums."""
    if offset + _FRAME.size > len(data):
        return False
    length = _length_at(data, offset)
    end = offset + _FRAME.size + length
    if not 0 < length < _LONGEST or end > len(data):
        return False
    return end + _FRAME.size > len(data) or _length_at(data, end) < _LONGEST


def _was_finished(data: bytes, offset: int) -> bool:
    """Whether the bytes from `offset` to the end are a whole frame of a record that was changed, not the beginning of a write."""
    if offset + _FRAME.size > len(data):
        return False
    length, checksum = _FRAME.unpack_from(data, offset)
    if length and offset + _FRAME.size + length <= len(data):
        return True
    # A whole record behind a length that is wrong.
    return any(data[offset:]) and zlib.crc32(memoryview(data)[offset + _FRAME.size :]) == checksum


def _length_at(data: bytes, offset: int) -> int:
    return int.from_bytes(data[offset : offset + 4], "big")


def write_all(file: FileIO, data: bytes) -> None:
    """Write to an unbuffered file, whose writes may be short: what a buffer holds back comes at the wrong time. Raises OSError."""
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def found_in(directory: Path) -> list[Path]:
    """The segments of a folder, oldest first."""
    return sorted(directory.glob(_NAMES))


def is_name(name: str) -> bool:
    """Whether a file of that name is a segment."""
    return fnmatchcase(name, _NAMES)


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
