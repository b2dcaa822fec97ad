"""The values of the two chunk topics (contract, section 3): many events per record, because the cost is per record.

The record header `format` names the layout. `docs/topics.md` describes them byte for byte. Events are
compressed together, since they resemble each other: half the bytes and half the CPU of each alone
(`docs/decisions/writer.md`).
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import zstandard
from msgspec import Struct

FORMAT_HEADER: Final = "format"
SOURCE_HEADER: Final = "source"
EVENTS_FORMAT: Final = b"chunk-1"
GROUPED_FORMAT: Final = b"grouped-1"
REPLAYED_HEADER: Final = "replayed"
"""Marks a record that was put back from the dead letters: its source position is old and is ignored.

Also one that a repair sends again. Its value is the position at which its one event was dead-lettered and counted, as
`partition/offset`, or `storage.exactly_once.rejections.UNCOUNTED`.
"""


class ChunkEvent(Struct, array_like=True, frozen=True, gc=False):
    """One accepted event: `id` is the uuid's 16 bytes, `received_ms` Unix time, `payload` its JSON as sent."""

    project: int
    id: bytes
    received_ms: int
    sdk: str
    payload: bytes


class Grouping(Struct, array_like=True, frozen=True):
    """The derivation of a fingerprint, shared by all its events in a chunk."""

    fingerprint: int
    version: str
    rule: str
    parts: tuple[str, ...]


class GroupedChunk(Struct, array_like=True, frozen=True):
    """The new events of one record of `events`.

    `partition` and `offset` are those of the source. `chunk` is the unchanged value of the source record,
    `kept` has the positions in it of the new events, and `grouping_of` their indexes into `groupings`.

    `retention` has the days for which the events of each project and their payloads are stored. They are
    decided once, so that every repeated insert puts a row into the same partition of its table.
    """

    partition: int
    offset: int
    kept: list[int]
    grouping_of: list[int]
    groupings: list[Grouping]
    chunk: bytes
    retention: dict[int, tuple[int, int]]


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


encode_grouped = _encoder.encode
decode_grouped = msgspec.msgpack.Decoder(GroupedChunk).decode
