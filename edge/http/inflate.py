"""Inflates bodies (contract, section 2, point 5): the limit bounds the stream, so no more than it is ever in memory."""

from typing import Final, cast

from isal import isal_zlib

from edge.request_errors import RequestError
from schemas.errors import Detail, WireError
from schemas.limits import MAX_BODY_BYTES

_WITH_GZIP_HEADER: Final = 31


_NOT_GZIP: Final = cast(type[Exception], isal_zlib.error)


_SMALL_BYTES: Final = 8192


_SMALL_INFLATED_BYTES: Final = 65_536


_MAX_GZIP_MEMBERS: Final = 64
"""Each member costs a copy of the bytes after it, so thousands of empty members would be an attack."""


def is_small(data: bytes, gzip: bool) -> bool:
    """Whether processing a body takes less time than a time slice costs others. Trusts gzip's length field."""
    length = int.from_bytes(data[-4:], "little") if gzip else len(data)
    return len(data) < _SMALL_BYTES and length < _SMALL_INFLATED_BYTES


def inflate(data: bytes) -> bytes:
    """Inflate a gzip body of one or more members, to at most one byte over the limit. Raises RequestError."""
    body = _inflate(data, MAX_BODY_BYTES)
    if body is None:
        raise RequestError(WireError.PAYLOAD_TOO_LARGE, "inflated")
    return body


def inflate_small(data: bytes) -> bytes | None:
    """Inflate a body whose length field claims that it is small; None if it isn't. Raises RequestError."""
    return _inflate(data, _SMALL_INFLATED_BYTES)


def _inflate(data: bytes, max_bytes: int) -> bytes | None:
    inflated = b""
    for member in range(_MAX_GZIP_MEMBERS):
        stream = isal_zlib.decompressobj(_WITH_GZIP_HEADER)
        try:
            inflated += stream.decompress(data, max_bytes + 1 - len(inflated))
        except _NOT_GZIP as error:
            raise _bad_gzip(str(error)) from None
        if len(inflated) > max_bytes:
            return None
        if not stream.eof:
            raise _bad_gzip("the bytes after a whole member are not another" if member else "it ends early")
        data = stream.unused_data
        if not data:
            return inflated
    raise _bad_gzip(f"more than {_MAX_GZIP_MEMBERS} members")


def _bad_gzip(reason: str) -> RequestError:
    return RequestError(WireError.VALIDATION_FAILED, "gzip", [Detail("body", f"not valid gzip: {reason}")])
