"""JSON, redirects, the error shape (contract, section 4) and conditional GET (RFC 9110, section 13)."""

import hashlib
from typing import Any, Final

import msgspec
from aiohttp import web
from msgspec import Struct

from dashboard.http.http_errors import HttpError
from schemas.errors import Detail, ErrorBody

REVALIDATE: Final = {"Cache-Control": "private, no-cache", "Vary": "Authorization, Cookie"}
"""Only the client may store the response, and it revalidates before each use, so changes are visible immediately."""
PARTIAL: Final = {"Svc-Partial": "true"}
"""Header of an answer without the rows of an unavailable server."""
_DIGEST_BYTES: Final = 16
_encode: Final = msgspec.json.Encoder().encode


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """A struct as JSON."""
    return web.Response(body=_encode(value), status=status, headers=headers, content_type="application/json")


def redirect(location: str) -> web.Response:
    """Redirect to `location` with GET, as after a form."""
    return web.Response(status=303, headers={"Location": location})


def error_response(error: HttpError) -> web.Response:
    """The error shape: `{"error": CODE, "details"?: [...]}`."""
    retry = error.headers.get("Retry-After") if error.error.status == 429 else None
    # Code and status alone don't name the unavailable service or the missing role.
    reason = [Detail("", error.sentence)] if error.error.status in {403, 503} else None
    body = ErrorBody(
        error=error.error.code,
        details=error.details or reason,
        retryAfterMs=None if retry is None else int(retry) * 1000,
    )
    return json_response(body, error.error.status, error.headers)


def encode_tagged(answer: Struct) -> tuple[bytes, str]:
    """The answer as JSON, and a weak ETag, which ignores cursors: they differ with each call for the same page."""
    body = content = _encode(answer)
    if getattr(answer, "next_cursor", None) is not None:
        content = _encode(msgspec.structs.replace(answer, next_cursor=""))
    digest = hashlib.blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()
    return body, f'W/"{digest}"'


def conditional_response(request: web.Request, answer: Struct, *, partial: bool) -> web.Response:
    """The answer, or 304 if the client has it already; `partial` if the rows of a server are missing."""
    body, etag = encode_tagged(answer)
    headers = REVALIDATE | {"ETag": etag} | (PARTIAL if partial else {})
    if matches_etag(request.headers.getall("If-None-Match", []), etag):
        return web.Response(status=304, headers=headers)
    return web.Response(body=body, headers=headers, content_type="application/json")


def matches_etag(if_none_match: list[str], etag: str) -> bool:
    """Whether `If-None-Match` is `*` or names the ETag, by weak comparison."""
    tags = {tag.strip().removeprefix("W/") for line in if_none_match for tag in line.split(",")}
    return "*" in tags or etag.removeprefix("W/") in tags
