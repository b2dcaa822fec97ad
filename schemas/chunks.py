"""The values of `events` and `grouped` (contract, section 3): many events per record, because the cost is per record.

The record header `format` names the layout. `docs/topics.md` describes them byte for byte. Events are
compressed together, since they resemble each other: half the bytes and half the CPU of each alone
(`docs/decisions/writer.md`).
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final
from zlib import crc32

import msgspec
import zstandard
from msgspec import Struct

from schemas.errors import SourceLost

FORMAT_HEADER: Final = "format"
SOURCE_HEADER: Final = "source"
EVENTS_FORMAT: Final = b"chunk-1"
GROUPED_FORMAT: Final = b"grouped-1"
REPLAYED_HEADER: Final = "replayed"
"""Marks a record that was put back from the dead letters: its source position is old and is ignored.

Also one that a repair sends again. Its value is the text of a `storage.exactly_once.rejections.Origin`, where its
events were dead-lettered and counted, or `UNCOUNTED` of that module.
"""


class ChunkEvent(Struct, array_like=True, frozen=True, gc=False):
    """One accepted event: `id` is the uuid's 16 bytes, `received_ms` Unix time, `payload` its JSON as sent."""

    project: int
    id: bytes
    received_ms: int
    sdk: str
    payload: bytes


class Grouping(Struct, array_like=True, frozen=True):
    """The derivation of a fingerprint, shared by all its events in a record."""

    fingerprint: int
    version: str
    rule: str
    parts: tuple[str, ...]


class GroupedRecord(Struct, array_like=True, frozen=True):
    """The decisions about one record of `events`: which of its events are new, and their grouping.

    `partition` and `offset` are those of the source, `crc` is the CRC-32 of its value. `kept` has the positions
    in it of the new events, `grouping_of` their indexes into `groupings`, and `projects` the project of each
    grouping. The events are read from the source; `chunk` has them instead in a record that is sent again, or that
    was put back for one event.

    `retention` has the days for which the events of each project and their payloads are stored. They are
    decided once, so that every repeated insert puts a row into the same partition of its table. `minutes` are
    those in which the new events were received (Unix time), or one for all of them: a lost source counts in them.
    """

    partition: int
    offset: int
    crc: int
    kept: list[int]
    grouping_of: list[int]
    groupings: list[Grouping]
    projects: list[int]
    retention: dict[int, tuple[int, int]]
    minutes: list[int]
    chunk: bytes = b""

    def events(self, source: bytes | None) -> list[ChunkEvent]:
        """The events at the positions of `kept`, given the source's value (None where `events` no longer has it).

        Raises SourceLost, and msgspec.DecodeError.
        """
        if self.chunk:
            return decode_chunk(self.chunk)
        if source is None:
            raise SourceLost(f"events/{self.partition}/{self.offset} has expired")
        if crc32(source) != self.crc:
            raise SourceLost(
                f"events/{self.partition}/{self.offset} is another record: the topic was recreated"
            )
        return decode_chunk(source)

    def new(self, events: Sequence[ChunkEvent]) -> Iterator[tuple[ChunkEvent, Grouping]]:
        """The new ones of these events."""
        for position, group in zip(self.kept, self.grouping_of, strict=True):
            yield events[position], self.groupings[group]


_encoder = msgspec.msgpack.Encoder()
_decode_events = msgspec.msgpack.Decoder(list[ChunkEvent]).decode
_MAX_CHUNK_BYTES: Final = 1 << 26
"""Maximum inflated size; an edge makes chunks of a few MB."""
_compress: Final = zstandard.ZstdCompressor(level=1, write_checksum=False).compress


def encode_chunk(events: Sequence[Any]) -> bytes:
    """`ChunkEvent`s, or tuples of the same shape, to the value of a record of `events`. For one thread of a process."""
    return _compress(_encoder.encode(events))


def decode_chunk(value: bytes) -> list[ChunkEvent]:
    """The events of a value. Raises msgspec.DecodeError."""
    return _decode_events(inflated(value))


def inflated(value: bytes) -> bytes:
    """A value without its compression, in which ids and payloads can be searched. Raises msgspec.DecodeError."""
    try:
        if zstandard.frame_content_size(value) > _MAX_CHUNK_BYTES:
            raise msgspec.DecodeError("the chunk is too large")
        # Spools are read in a thread, and a decompressor belongs to one.
        return zstandard.decompress(value)
    except zstandard.ZstdError as error:
        raise msgspec.DecodeError(str(error)) from None


_decode_grouped = msgspec.msgpack.Decoder(GroupedRecord).decode


def encode_grouped(record: GroupedRecord) -> bytes:
    """The value of a record of `grouped`. For one thread of a process."""
    return _compress(_encoder.encode(record))


def decode_grouped(value: bytes) -> GroupedRecord:
    """The decisions of a value. Raises msgspec.DecodeError."""
    return _decode_grouped(inflated(value))
