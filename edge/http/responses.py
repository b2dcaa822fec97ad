"""Every response of the ingest API, with the CORS headers that let a page of any origin read it (contract, 2.12)."""

import re
from typing import Final

import msgspec
from aiohttp import web

from edge.request_errors import RequestError
from schemas.errors import BatchResponse, ErrorBody, RejectedEvent, WireError

JSON: Final = "application/json"
_CORS: Final = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "Retry-After",
    "Server": "svc",
}
_JSON_HEADERS: Final = _CORS | {"Content-Type": JSON}
_PREFLIGHT: Final = _CORS | {
    "Access-Control-Allow-Methods": "POST, OPTIONS",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Content-Encoding, Idempotency-Key, Svc-Sdk",
    "Access-Control-Max-Age": "86400",
    "Vary": "Access-Control-Request-Headers",
}
_HEADER_NAMES: Final = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z, \t]+").fullmatch
_encode: Final = msgspec.json.Encoder().encode


def accepted() -> web.Response:
    """202 to a single event."""
    return web.Response(status=202, body=b"{}", headers=_JSON_HEADERS)


def batch(accepted: int, rejected: list[RejectedEvent]) -> web.Response:
    """202 to a batch whose wrapper is valid, even if every event is rejected (contract, section 2, point 2)."""
    body = _encode(BatchResponse(accepted, len(rejected), rejected))
    return web.Response(status=202, body=body, headers=_JSON_HEADERS)


def error(cause: RequestError) -> web.Response:
    """The declared error response."""
    headers, retry_after_ms = dict(_JSON_HEADERS), cause.retry_after_ms
    if retry_after_ms is not None:
        # Rounded up to whole seconds (protocol, section 7); only the body of a 429 has milliseconds.
        headers["Retry-After"] = str(-(-retry_after_ms // 1000))
        if cause.error is not WireError.RATE_LIMITED:
            retry_after_ms = None
    body = ErrorBody(cause.error.code, cause.details, retry_after_ms)
    return web.Response(status=cause.error.status, body=_encode(body), headers=headers)


def wrong_method(allowed: str) -> web.Response:
    """405 with the methods that the path supports."""
    response = error(RequestError(WireError.METHOD_NOT_ALLOWED, "method"))
    response.headers["Allow"] = allowed
    return response


def preflight(requested: str) -> web.Response:
    """204 to a browser's CORS preflight request; allows every header that it asks for.

    Tracing libraries add theirs to each request of a page. `*` would not allow Authorization.
    """
    allowed = {"Access-Control-Allow-Headers": requested} if _HEADER_NAMES(requested) else {}
    return web.Response(status=204, headers=_PREFLIGHT | allowed)


def document(body: bytes, content_type: str = JSON, status: int = 200) -> web.Response:
    """A response that is no part of ingestion: health, metrics, OpenAPI."""
    return web.Response(status=status, body=body, headers=_CORS | {"Content-Type": content_type})
