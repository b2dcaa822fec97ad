"""One bounded read of a body and one bounded inflate: limits wrap the stream, not the result (contract, section 2, point 5)."""

import asyncio
from typing import Final, cast

from aiohttp import StreamReader, web
from aiohttp.http_exceptions import PayloadEncodingError
from aiohttp.web_protocol import RequestPayloadError
from isal import isal_zlib
from msgspec import Struct

from edge.http.errors import RequestError
from edge.limits.body_budget import BodyReservation
from schemas.errors import Detail, WireError
from schemas.limits import MAX_BODY_BYTES
from schemas.settings import EdgeSettings

_WITH_GZIP_HEADER: Final = 31
_NOT_GZIP: Final = cast(type[Exception], isal_zlib.error)
_MOST_GZIP_BYTES: Final = MAX_BODY_BYTES + 65_536
"""Incompressible data grows by a few bytes every 64 KB; no honest body of the limit's size is longer than this."""
_SMALL_BYTES: Final = 8192
_SMALL_INFLATED_BYTES: Final = 65_536
_MOST_MEMBERS: Final = 64
"""Each member of a gzip body costs a copy of what follows it: thousands of empty ones would be an attack."""


class SlowBody(Exception):
    """The body did not arrive in time, or its sender went away."""


class BodyTimes(Struct, frozen=True):
    """How long a body may take: `seconds` at most, and after `grace_seconds` no longer than at `least_rate` bytes a second."""

    seconds: float = 30.0
    grace_seconds: float = 5.0
    least_rate: int = 1024

    def allowed(self, size: int) -> float:
        """Seconds from its beginning in which a body of which so many bytes have come must go on."""
        return min(self.seconds, self.grace_seconds + size / self.least_rate)


def body_times(settings: EdgeSettings) -> BodyTimes:
    """What the settings say."""
    return BodyTimes(
        settings.edge_body_timeout_seconds,
        settings.edge_body_grace_seconds,
        settings.edge_body_least_rate,
    )


class BodyReader:
    """Reads bodies."""

    def __init__(self, times: BodyTimes) -> None:
        self._times = times

    async def receive(self, request: web.BaseRequest, gzip: bool, held: BodyReservation) -> bytes:
        """The body as it came. Raises Fault (413, 400 for bad chunks, 429 and 503 where memory is short) or SlowBody."""
        most = _MOST_GZIP_BYTES if gzip else MAX_BODY_BYTES
        length = request.content_length
        if length is not None and length > most:
            raise RequestError(WireError.PAYLOAD_TOO_LARGE, "length")
        data = await self._receive(request, most, held)
        if len(data) > most:
            raise RequestError(WireError.PAYLOAD_TOO_LARGE, "body")
        return data

    async def _receive(self, request: web.BaseRequest, most: int, held: BodyReservation) -> bytes:
        content = request.content
        try:
            if content.is_eof():
                data = content.read_nowait()
                held.add(len(data))
                return data
            length = request.content_length
            if length is not None:
                held.add(length)
            await _invite(request)
            return await self._gather(content, most, None if length is not None else held)
        except (TimeoutError, ConnectionError):
            raise SlowBody from None
        except (RequestPayloadError, PayloadEncodingError) as error:
            details = [Detail("body", f"broken transfer: {error}")]
            raise RequestError(WireError.VALIDATION_FAILED, "body", details) from None

    async def _gather(self, content: StreamReader, most: int, held: BodyReservation | None) -> bytes:
        """What comes until the end, or until it is more than `most`."""
        parts = []
        size = 0
        began = asyncio.get_running_loop().time()
        async with asyncio.timeout(self._times.allowed(0)) as timeout:
            while size <= most and (part := await content.readany()):
                size += len(part)
                if held is not None:
                    held.add(len(part))
                parts.append(part)
                timeout.reschedule(began + self._times.allowed(size))
        return b"".join(parts)


def inflate(data: bytes) -> bytes:
    """A gzip body of one or more members, inflated to at most one byte past the limit. Raises Fault."""
    body = _inflate(data, MAX_BODY_BYTES)
    if body is None:
        raise RequestError(WireError.PAYLOAD_TOO_LARGE, "inflated")
    return body


def inflate_small(data: bytes) -> bytes | None:
    """The same of a body that calls itself small; None where it isn't."""
    return _inflate(data, _SMALL_INFLATED_BYTES)


def _inflate(data: bytes, most: int) -> bytes | None:
    out = b""
    for _ in range(_MOST_MEMBERS):
        stream = isal_zlib.decompressobj(_WITH_GZIP_HEADER)
        try:
            out += stream.decompress(data, most + 1 - len(out))
        except _NOT_GZIP as error:
            raise _bad_gzip(str(error)) from None
        if len(out) > most:
            return None
        if not stream.eof:
            raise _bad_gzip("it ends early")
        data = stream.unused_data
        if not data:
            return out
    raise _bad_gzip(f"more than {_MOST_MEMBERS} members")


def is_small(data: bytes, gzip: bool) -> bool:
    """Whether a body is worked off in less time than a turn costs others; of gzip its own word about its length counts."""
    length = int.from_bytes(data[-4:], "little") if gzip else len(data)
    return len(data) < _SMALL_BYTES and length < _SMALL_INFLATED_BYTES


async def _invite(request: web.BaseRequest) -> None:
    """Only now that everything before the body has passed is a client that waits for it told to send the body."""
    if "Expect" in request.headers:
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0


def _bad_gzip(why: str) -> RequestError:
    return RequestError(WireError.VALIDATION_FAILED, "gzip", [Detail("body", f"not valid gzip: {why}")])
