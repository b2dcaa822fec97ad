"""Receives the body of a request within limits of size, memory and time (contract, section 2, point 5)."""

import asyncio
from typing import Final

from aiohttp import StreamReader, web
from aiohttp.http_exceptions import PayloadEncodingError
from aiohttp.web_protocol import RequestPayloadError
from msgspec import Struct

from edge.limits.body_budget import BodyReservation
from edge.request_errors import RequestError
from schemas.errors import Detail, WireError
from schemas.limits import MAX_BODY_BYTES
from schemas.settings import EdgeSettings

_MAX_GZIP_BYTES: Final = MAX_BODY_BYTES + 65_536
"""Gzip adds a few bytes per 64 KB to incompressible data, so a body within the limit is never longer than this."""


class SlowBody(Exception):
    """The body did not arrive in time, or the client disconnected."""


class BodyTimes(Struct, frozen=True):
    """Time limits of a body: `seconds` in total, and after `grace_seconds` an average of `min_rate` bytes a second."""

    seconds: float = 30.0
    grace_seconds: float = 5.0
    min_rate: int = 1024

    def allowed(self, size: int) -> float:
        """Seconds after its start by which a body of which `size` bytes have arrived must continue."""
        return min(self.seconds, self.grace_seconds + size / self.min_rate)


def body_times(settings: EdgeSettings) -> BodyTimes:
    """The time limits from the settings."""
    return BodyTimes(settings.edge_body_timeout_seconds, min_rate=settings.edge_body_least_rate)


class BodyReader:
    """Receives bodies within size, memory and time limits."""

    def __init__(self, times: BodyTimes) -> None:
        self._times = times

    async def receive(self, request: web.BaseRequest, gzip: bool, reservation: BodyReservation) -> bytes:
        """The body, still encoded.

        Raises RequestError (413, 400 for bad chunks, 429 and 503 without memory) or SlowBody.
        """
        max_bytes = _MAX_GZIP_BYTES if gzip else MAX_BODY_BYTES
        length = request.content_length
        if length is not None and length > max_bytes:
            raise RequestError(WireError.PAYLOAD_TOO_LARGE, "length")
        data = await self._receive(request, max_bytes, reservation)
        if len(data) > max_bytes:
            raise RequestError(WireError.PAYLOAD_TOO_LARGE, "body")
        return data

    async def _receive(self, request: web.BaseRequest, max_bytes: int, reservation: BodyReservation) -> bytes:
        content = request.content
        try:
            if content.is_eof():
                data = content.read_nowait()
                reservation.add_bytes(len(data))
                return data
            length = request.content_length
            if length is not None:
                reservation.check(length)
            # Only after every check that precedes the body.
            if "Expect" in request.headers:
                await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                request.writer.output_size = 0
            return await self._collect(content, max_bytes, reservation)
        except (TimeoutError, ConnectionError):
            raise SlowBody from None
        except (RequestPayloadError, PayloadEncodingError) as error:
            details = [Detail("body", f"broken transfer: {error}")]
            raise RequestError(WireError.VALIDATION_FAILED, "body", details) from None

    async def _collect(self, content: StreamReader, max_bytes: int, reservation: BodyReservation) -> bytes:
        """Read to the end, or until there are more than `max_bytes`."""
        parts = []
        size = 0
        started = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(self._times.allowed(0)) as timeout:
                reservation.begin(lambda: timeout.reschedule(started))
                while size <= max_bytes and (part := await content.readany()):
                    size += len(part)
                    reservation.add_bytes(len(part))
                    parts.append(part)
                    timeout.reschedule(started + self._times.allowed(size))
        finally:
            reservation.end()
        return b"".join(parts)
