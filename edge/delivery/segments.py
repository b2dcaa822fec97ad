"""The spool's file format, and reading of torn or damaged files.

A segment is a sequence of frames: length and CRC-32 of the record, four bytes each, big-endian, then the
record. No record is empty: a length of 0 is a hole left by a crash or a full disk (the CRC-32 of nothing is 0
too). After invalid bytes, reading continues at the next valid frame. No byte is ever discarded: a segment
that contains anything but valid frames is not removed.
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
_MAX_RECORD_BYTES: Final = 1 << 24
"""Longest record that is searched for after damage: far above Kafka's limit."""
_LENGTHS: Final = re.compile(rb"\0(?!\0\0\0)").finditer
"""Candidate offsets of such a length. A regex search is far faster than a check of every offset, above all in
a hole of zeros."""


class SegmentContents(NamedTuple):
    """The valid records of a segment in their order, and the number of invalid bytes.

    `damaged` bytes belong to completed writes, which may have been acknowledged. `unfinished` bytes at the
    end look like a write that a crash cut off, which was not acknowledged.
    """

    records: list[bytes]
    damaged: int
    unfinished: int


def frame(record: bytes) -> bytes:
    """The frame of a record. Raises ValueError if it is empty."""
    if not record:
        raise ValueError("an empty record is indistinguishable from a hole")
    return _FRAME.pack(len(record), zlib.crc32(record)) + record


def size_of(record: bytes) -> int:
    """The size of a record's frame."""
    return _FRAME.size + len(record)


def read(segment: Path) -> SegmentContents:
    """Read a segment. Raises OSError."""
    return parse(segment.read_bytes())


def parse(data: bytes) -> SegmentContents:
    """Parse a segment's bytes."""
    records: list[bytes] = []
    damaged = offset = 0
    while offset < len(data):
        record = record_at(data, offset)
        if record is not None:
            records.append(record)
            offset += size_of(record)
            continue
        following = _next_valid(data, offset)
        if following is None:
            if _was_finished(data, offset):
                return SegmentContents(records, damaged + len(data) - offset, 0)
            return SegmentContents(records, damaged, len(data) - offset)
        damaged += following - offset
        offset = following
    return SegmentContents(records, damaged, 0)


def record_at(data: bytes, offset: int) -> bytes | None:
    """The valid record whose frame starts at `offset`, or None."""
    if offset + _FRAME.size > len(data):
        return None
    length, checksum = _FRAME.unpack_from(data, offset)
    end = offset + _FRAME.size + length
    if length == 0 or end > len(data) or zlib.crc32(memoryview(data)[offset + _FRAME.size : end]) != checksum:
        return None
    return data[offset + _FRAME.size : end]


def _next_valid(data: bytes, damaged: int) -> int | None:
    """The offset of the first valid frame after a damaged one, or the end after a complete damaged one.

    If the damaged frame's length leads to a valid frame or to the end of the segment, that length is most
    likely correct. Then anything before that offset that looks like a frame belongs to the damaged record,
    unless valid frames lead from it to exactly that offset.
    """
    end = damaged + _FRAME.size + _length_at(data, damaged)
    is_correct = end == len(data) or record_at(data, end) is not None
    if is_correct and end > damaged + _FRAME.size:
        return next(
            (offset for offset in _valid_frames(data, damaged, end) if _leads_to(data, offset, end)), end
        )
    return next(_valid_frames(data, damaged, len(data)), None)


def _valid_frames(data: bytes, damaged: int, end: int) -> Iterator[int]:
    """Offsets of valid frames after `damaged` and before `end`."""
    for match in _LENGTHS(data, damaged + 1, end):
        offset: int = match.start()
        if _is_plausible(data, offset) and record_at(data, offset) is not None:
            yield offset


def _leads_to(data: bytes, offset: int, end: int) -> bool:
    """Whether consecutive valid frames lead from `offset` to exactly `end`."""
    while offset < end and (record := record_at(data, offset)) is not None:
        offset += size_of(record)
    return offset == end


def _is_plausible(data: bytes, offset: int) -> bool:
    """Whether a frame may start here, judged by its length and the next frame's: cheaper than checksums."""
    if offset + _FRAME.size > len(data):
        return False
    length = _length_at(data, offset)
    end = offset + _FRAME.size + length
    if not 0 < length < _MAX_RECORD_BYTES or end > len(data):
        return False
    return end + _FRAME.size > len(data) or _length_at(data, end) < _MAX_RECORD_BYTES


def _was_finished(data: bytes, offset: int) -> bool:
    """Whether the bytes from `offset` to the end are a complete frame of a damaged record, not an unfinished write."""
    if offset + _FRAME.size > len(data):
        return False
    length, checksum = _FRAME.unpack_from(data, offset)
    if length and offset + _FRAME.size + length <= len(data):
        return True
    # A complete record with a wrong length.
    return any(data[offset:]) and zlib.crc32(memoryview(data)[offset + _FRAME.size :]) == checksum


def _length_at(data: bytes, offset: int) -> int:
    return int.from_bytes(data[offset : offset + 4], "big")


def write_all(file: FileIO, data: bytes) -> None:
    """Write all bytes to an unbuffered file, whose writes may be short. Raises OSError."""
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[file.write(remaining) :]


def segments_in(directory: Path) -> list[Path]:
    """The segments of a folder, oldest first."""
    return sorted(directory.glob(_NAMES))


def is_name(name: str) -> bool:
    """Whether a file name is that of a segment."""
    return fnmatchcase(name, _NAMES)


def name(number: int, created: float) -> str:
    """The file name of a segment: its number in the folder, and its creation time in Unix seconds."""
    return f"{number:012d}-{int(created * 1000):013d}{SUFFIX}"


def sequence(segment: Path) -> int:
    """A segment's number in its folder."""
    return int(segment.name.split("-")[0])


def created(segment: Path) -> float:
    """A segment's creation time in Unix seconds."""
    return int(segment.name.removesuffix(SUFFIX).split("-")[1]) / 1000


def adopt(segments: list[Path], directory: Path) -> None:
    """Move segments of an ended process into `directory`, after its own."""
    last = max(map(sequence, segments_in(directory)), default=0)
    for number, segment in enumerate(sorted(segments, key=created), last + 1):
        segment.rename(directory / name(number, created(segment)))
    sync_directory(directory)


def sync_directory(directory: Path) -> None:
    """Return when the directory entries are on disk. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
