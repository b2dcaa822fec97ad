"""Packs: payloads of several events, compressed together and stored in the row of the first. Pure.

A row of `payloads` whose `pack` is 0 has its own JSON. Otherwise this event's JSON is in a pack, and `pack`
is the id of the event whose row has it. The events of a pack are of one project, week and retention, so they
are dropped together; they resemble each other, since a block is sorted by issue
(`docs/decisions/writer.md`).
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
import zstandard

from schemas.errors import BadPayload

MAX_EVENTS: Final = 128
MAX_BYTES: Final = 1 << 20
"""Of JSON; a larger event is in no pack."""
_MAX_INFLATED: Final = 2 * MAX_BYTES
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(dict[bytes, bytes]).decode


def packed(
    ids: Sequence[bytes], payloads: Sequence[bytes], groups: Iterable[Any]
) -> tuple[list[bytes], list[bytes]]:
    """The columns `payload` and `pack` (ids, 16 zero bytes for none) of consecutive events.

    The events of one pack are of one of the groups.
    """
    compress = zstandard.ZstdCompressor(level=1, write_checksum=False).compress
    columns: tuple[list[bytes], list[bytes]] = ([], [])
    first, size, last = 0, 0, object()

    def end_pack(end: int) -> None:
        if end - first == 1:
            columns[0].append(payloads[first])
            columns[1].append(bytes(16))
        elif end > first:
            content = dict(zip(ids[first:end], payloads[first:end], strict=True))
            columns[0].extend((compress(_encode(content)), *(b"",) * (end - first - 1)))
            columns[1].extend((ids[first],) * (end - first))

    for row, group in enumerate(groups):
        added = size + len(payloads[row])
        if group != last or added > MAX_BYTES or row - first == MAX_EVENTS:
            end_pack(row)
            first, last, added = row, group, len(payloads[row])
        size = added
    end_pack(len(payloads))
    return columns


def unpacked(pack: bytes) -> dict[bytes, bytes]:
    """The JSON of each event of a pack, by the 16 bytes of its id. Raises BadPayload."""
    try:
        if zstandard.frame_content_size(pack) > _MAX_INFLATED:
            raise BadPayload("the pack is too large")
        return _decode(zstandard.decompress(pack))
    except (zstandard.ZstdError, msgspec.DecodeError) as error:
        raise BadPayload(str(error)) from None
