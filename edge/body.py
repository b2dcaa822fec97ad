"""One bounded read of a body and one bounded inflate: limits wrap the stream, not the result (contract, section 2, point 5)."""

import asyncio
from typing import Final, cast

from aiohttp import StreamReader, web
from aiohttp.http_exceptions import PayloadEncodingError
from aiohttp.web_protocol import RequestPayloadError
from isal import isal_zlib

from edge.faults import Fault, unavailable
from edge.turns import Turns
from schemas.errors import Detail, WireError
from schemas.limits import MAX_BODY_BYTES

_WITH_GZIP_HEADER: Final = 31
_NOT_GZIP: Final = cast(type[Exception], isal_zlib.error)
_MOST_GZIP_BYTES: Final = MAX_BODY_BYTES + 65_536
"""Incompressible data grows by a few bytes every 64 KB; no honest body of the limit's size is longer than this."""
_SMALL_BYTES: Final = 8192
"""Below, a body is worked off in less time than a turn costs others."""
_MOST_MEMBERS: Final = 64
"""Each member of a gzip body costs a copy of what follows it: thousands of empty ones would be an attack."""


class SlowBody(Exception):
    """The body did not arrive in time, or its sender went away."""


class BodyReader:
    """Reads bodies. What all unfinished ones together hold is bounded too: thousands of slow senders must not fill the memory."""

    def __init__(self, timeout: float, most_waiting: int = 256 * 1024 * 1024) -> None:
        self._timeout = timeout
        self._most_waiting = most_waiting
        self.waiting = 0

    async def read(self, request: web.BaseRequest, gzip: bool, turns: Turns) -> bytes:
        """The decoded body. Raises Fault (413, 400 for bad gzip or chunks, 503 where memory is short) or SlowBody.

        What isn't small waits for a turn first: still as it came, because inflated it would take eight times the memory.
        """
        most = _MOST_GZIP_BYTES if gzip else MAX_BODY_BYTES
        length = request.content_length
        if length is not None and length > most:
            raise Fault(WireError.PAYLOAD_TOO_LARGE, "length")
        data = await self._receive(request, most)
        if len(data) > most:
            raise Fault(WireError.PAYLOAD_TOO_LARGE, "body")
        if len(data) >= _SMALL_BYTES:
            await turns.mine()
        return inflate(data) if gzip else data

    async def _receive(self, request: web.BaseRequest, most: int) -> bytes:
        content = request.content
        try:
            if content.is_eof():
                return content.read_nowait()
            await _invite(request)
            async with asyncio.timeout(self._timeout):
                return await self._gather(content, most)
        except (TimeoutError, ConnectionError):
            raise SlowBody from None
        except (RequestPayloadError, PayloadEncodingError) as error:
            details = [Detail("body", f"broken transfer: {error}")]
            raise Fault(WireError.VALIDATION_FAILED, "body", details) from None

    async def _gather(self, content: StreamReader, most: int) -> bytes:
        """What comes until the end, or until it is more than `most`."""
        parts = []
        size = 0
        try:
            while size <= most and (part := await content.readany()):
                size += len(part)
                self.waiting += len(part)
                if self.waiting > self._most_waiting:
                    raise unavailable("memory")
                parts.append(part)
        finally:
            self.waiting -= size
        return b"".join(parts)


def inflate(data: bytes) -> bytes:
    """A gzip body of one or more members, inflated to at most one byte past the limit. Raises Fault."""
    out = b""
    for _ in range(_MOST_MEMBERS):
        stream = isal_zlib.decompressobj(_WITH_GZIP_HEADER)
        try:
            out += stream.decompress(data, MAX_BODY_BYTES + 1 - len(out))
        except _NOT_GZIP as error:
            raise _bad_gzip(str(error)) from None
        if len(out) > MAX_BODY_BYTES:
            raise Fault(WireError.PAYLOAD_TOO_LARGE, "inflated")
        if not stream.eof:
            raise _bad_gzip("it ends early")
        data = stream.unused_data
        if not data:
            return out
    raise _bad_gzip(f"more than {_MOST_MEMBERS} members")


async def _invite(request: web.BaseRequest) -> None:
    """Only now that everything before the body has passed is a client that waits for it told to send the body."""
    if "Expect" in request.headers:
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0


def _bad_gzip(why: str) -> Fault:
    return Fault(WireError.VALIDATION_FAILED, "gzip", [Detail("body", f"not valid gzip: {why}")])
