"""The two chunk topics' values (contract, section 3): many events a record, because a record is what costs.

Both are msgpack arrays; the record header `format` names the layout. `docs/topics.md` describes them byte for byte.
"""

from typing import Final

import msgspec
from msgspec import Struct

FORMAT_HEADER: Final = "format"
SOURCE_HEADER: Final = "source"
EVENTS_FORMAT: Final = b"events-1"
GROUPED_FORMAT: Final = b"grouped-1"


class ChunkEvent(Struct, array_like=True, frozen=True, gc=False):
    """One accepted event: `id` is the uuid's 16 bytes, `received_ms` Unix time, `payload` a frame of `schemas.payload`."""

    project: int
    id: bytes
    received_ms: int
    sdk: str
    payload: bytes


class Grouping(Struct, array_like=True, frozen=True):
    """How a fingerprint came about: shared by all events of a chunk that have it."""

    fingerprint: int
    version: str
    rule: str
    parts: tuple[str, ...]


class GroupedChunk(Struct, array_like=True, frozen=True):
    """The new events of one record of `events`.

    `partition` and `offset` are the source's. `kept` are the positions in `chunk` of the events that are new, `grouping_of`
    gives for each the index into `groupings`; `chunk` is the source record's value as it came.
    """

    partition: int
    offset: int
    kept: list[int]
    grouping_of: list[int]
    groupings: list[Grouping]
    chunk: bytes


_encoder = msgspec.msgpack.Encoder()
encode_chunk = _encoder.encode
"""list[ChunkEvent] (or tuples of the same shape) to the value of a record of `events`."""
decode_chunk = msgspec.msgpack.Decoder(list[ChunkEvent]).decode
encode_grouped = _encoder.encode
decode_grouped = msgspec.msgpack.Decoder(GroupedChunk).decode
