"""Increments in `issue-deltas`: JSON arrays without names, because there are as many as events, compressed together.

Commands and signals are objects, so the first byte of a value distinguishes them. Internal to the processors.
"""

from typing import Final

import msgspec
import zstandard
from msgspec import Raw, Struct

_COMMAND: Final = b"{"


class Row(Struct, array_like=True, gc=False):
    """The number of events of an increment with these values; `hour` is the event's time in Unix hours."""

    release: str
    environment: str
    platform: str
    hour: int
    events: int


class Description(Struct, array_like=True, frozen=True, gc=False):
    """An event's description of its issue, with the derivation of its fingerprint."""

    error_type: str
    message: str
    culprit: str
    version: str
    rule: str
    parts: tuple[str, ...]


class Increment(Struct, array_like=True, gc=False):
    """The increment of one source record for one fingerprint.

    Times are event times (contract, section 2, point 10), Unix ms. `issue` is the issue that the fingerprint
    opens in the project. `first_release` belongs to the oldest event; `received_ms`, `last_event` (16 bytes,
    base64 on the wire), `last_release` and `description` (an encoded `Description`) to the newest. `users`
    are distinct `schemas.ids.user_hash`es. `owner` is whom the project's owner rules name for the first event.
    """

    issue: int
    project: int
    fingerprint: int
    events: int
    first_ms: int
    last_ms: int
    received_ms: int
    last_event: bytes
    first_release: str
    last_release: str
    rows: list[Row]
    users: list[int]
    description: Raw
    owner: str = ""

    @property
    def releases(self) -> dict[str, int]:
        events: dict[str, int] = {}
        for row in self.rows:
            events[row.release] = events.get(row.release, 0) + row.events
        return events

    @property
    def environments(self) -> list[str]:
        return list(dict.fromkeys(row.environment for row in self.rows))


class SourceIncrements(Struct, array_like=True, frozen=True):
    """The increments of one source record of `events` that go to one partition of `issue-deltas`."""

    partition: int
    offset: int
    increments: list[Increment]


_encoder = msgspec.json.Encoder()
encode_description = _encoder.encode
decode_description = msgspec.json.Decoder(Description).decode
encode_source = _encoder.encode
_decode_bundle = msgspec.json.Decoder(list[SourceIncrements]).decode
_compress = zstandard.ZstdCompressor(level=1, write_checksum=True).compress
_inflate = zstandard.ZstdDecompressor().decompress


def join(pieces: list[bytes]) -> bytes:
    """Join encoded `SourceIncrements` to one value of `issue-deltas`, without encoding them again."""
    return _compress(b"[" + b",".join(pieces) + b"]")


def decode_bundle(value: bytes) -> list[SourceIncrements]:
    """The increments of a value. Raises msgspec.DecodeError."""
    try:
        return _decode_bundle(_inflate(value))
    except zstandard.ZstdError as error:
        raise msgspec.DecodeError(str(error)) from None


def is_bundle(value: bytes) -> bool:
    """Whether a value of `issue-deltas` holds increments; a `schemas.issues.DeltaRecord` otherwise."""
    return value[:1] != _COMMAND
