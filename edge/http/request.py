"""Reads a request: its project token, its headers and its body (contract, section 2, points 1, 4 and 5).

The body is read and inflated under limits: they bound the stream, so no more than the limit is ever in memory.
"""

import asyncio
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, cast

from aiohttp import StreamReader, web
from aiohttp.http_exceptions import PayloadEncodingError
from aiohttp.web_protocol import RequestPayloadError
from isal import isal_zlib
from msgspec import Struct

from edge.limits.body_budget import BodyReservation
from edge.project_snapshot import ProjectSnapshot
from edge.request_errors import RequestError, unavailable
from schemas.errors import Detail, WireError
from schemas.ids import TOKEN_PREFIX, decode_token
from schemas.limits import MAX_BODY_BYTES
from schemas.projects import Project
from schemas.settings import EdgeSettings

MAX_SDK_LENGTH: Final = 200
_MAX_CACHED_TYPE_LENGTH: Final = 200
"""Longer `Content-Type` values are not cached: clients must not be able to grow the cache."""
_SDK: Final = re.compile(r"[!-~]+/[!-.0-~]+").fullmatch
_WITH_GZIP_HEADER: Final = 31
_NOT_GZIP: Final = cast(type[Exception], isal_zlib.error)
_MAX_GZIP_BYTES: Final = MAX_BODY_BYTES + 65_536
"""Gzip adds a few bytes per 64 KB to incompressible data, so a body within the limit is never longer than this."""
_SMALL_BYTES: Final = 8192
_SMALL_INFLATED_BYTES: Final = 65_536
_MAX_GZIP_MEMBERS: Final = 64
"""Each member costs a copy of the bytes after it, so thousands of empty members would be an attack."""


class SlowBody(Exception):
    """The body did not arrive in time, or the client disconnected."""


class RequestHeaders(Struct, frozen=True):
    """The sending SDK, and whether the body is gzip."""

    sdk: str
    gzip: bool


def bearer_token(header: str | None) -> str | None:
    """The token of an Authorization header, or None if there is none. The scheme is case-insensitive (RFC 9110)."""
    if header is None:
        return None
    scheme, _, token = header.partition(" ")
    token = token.strip()
    return token if scheme.lower() == "bearer" and token.startswith(TOKEN_PREFIX) else None


def authenticate(header: str | None, projects: ProjectSnapshot) -> tuple[str, Project]:
    """The token and its project. Raises RequestError: 401, or 503 while the token can't be verified."""
    token = bearer_token(header)
    if token is None:
        raise RequestError(WireError.UNAUTHORIZED, "malformed")
    project = projects.by_token(token)
    if project is not None:
        return token, project
    if decode_token(token) is None:
        raise RequestError(WireError.UNAUTHORIZED, "malformed")
    if not projects.current:
        # The token may be newer than the snapshot, and a failure of ours is never a 4xx.
        raise unavailable("registry")
    raise RequestError(WireError.UNAUTHORIZED, "unknown")


def read_headers(headers: Mapping[str, str]) -> RequestHeaders:
    """Check the headers. Raises RequestError; its details name each invalid header as the field."""
    if headers.get("Transfer-Encoding", "chunked").strip().lower() != "chunked":
        # aiohttp undoes `chunked` alone, and would take what is left for the body.
        details = [Detail("Transfer-Encoding", "expected chunked")]
        raise RequestError(WireError.VALIDATION_FAILED, "headers", details)
    content_type = headers.get("Content-Type")
    cacheable = content_type is None or len(content_type) <= _MAX_CACHED_TYPE_LENGTH
    parse = _parse_headers if cacheable else _parse_headers.__wrapped__
    return parse(headers.get("Svc-Sdk"), content_type, headers.get("Content-Encoding"))


def named_sdk(headers: Mapping[str, str]) -> str:
    """The unchecked SDK name of a request that may be refused, safe to count and forward; "" without one.

    aiohttp decodes bytes that aren't UTF-8 to lone surrogates, which neither JSON nor Prometheus' text can encode.
    """
    return headers.get("Svc-Sdk", "")[:MAX_SDK_LENGTH].encode("utf-8", "replace").decode()


# A fleet sends few combinations, and parsing one costs as much as routing. Errors are raised, so they aren't cached.
@lru_cache(maxsize=1000)
def _parse_headers(sdk: str | None, content_type: str | None, encoding: str | None) -> RequestHeaders:
    details = []
    if sdk is None:
        details.append(Detail("Svc-Sdk", "required"))
    elif len(sdk) > MAX_SDK_LENGTH or not _SDK(sdk):
        details.append(
            Detail("Svc-Sdk", f"expected <sdk-name>/<sdk-version> of at most {MAX_SDK_LENGTH} characters")
        )
    if content_type is None:
        details.append(Detail("Content-Type", "required"))
    elif content_type.split(";")[0].strip().lower() != "application/json":
        details.append(Detail("Content-Type", "expected application/json"))
    coding = (encoding or "identity").strip().lower()
    if coding not in {"gzip", "identity"}:
        details.append(Detail("Content-Encoding", "expected gzip or identity"))
    if details:
        raise RequestError(WireError.VALIDATION_FAILED, "headers", details)
    return RequestHeaders(sdk or "", coding == "gzip")


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
    return BodyTimes(
        settings.edge_body_timeout_seconds,
        settings.edge_body_grace_seconds,
        settings.edge_body_least_rate,
    )


class BodyReader:
    """Receives bodies within size, memory and time limits."""

    def __init__(self, times: BodyTimes) -> None:
        self._times = times

    async def receive(self, request: web.BaseRequest, gzip: bool, reservation: BodyReservation) -> bytes:
        """The body, still encoded. Raises RequestError (413, 400 for bad chunks, 429 and 503 without memory) or SlowBody."""
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
                reservation.add(len(data))
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
                    reservation.add(len(part))
                    parts.append(part)
                    timeout.reschedule(started + self._times.allowed(size))
        finally:
            reservation.end()
        return b"".join(parts)


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
    for _ in range(_MAX_GZIP_MEMBERS):
        stream = isal_zlib.decompressobj(_WITH_GZIP_HEADER)
        try:
            inflated += stream.decompress(data, max_bytes + 1 - len(inflated))
        except _NOT_GZIP as error:
            raise _bad_gzip(str(error)) from None
        if len(inflated) > max_bytes:
            return None
        if not stream.eof:
            raise _bad_gzip("it ends early")
        data = stream.unused_data
        if not data:
            return inflated
    raise _bad_gzip(f"more than {_MAX_GZIP_MEMBERS} members")


def _bad_gzip(reason: str) -> RequestError:
    return RequestError(WireError.VALIDATION_FAILED, "gzip", [Detail("body", f"not valid gzip: {reason}")])
