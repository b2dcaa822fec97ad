"""Every answer of the ingest interface, with the headers that let a page of any origin read it (contract, 2.12)."""

from typing import Final

import msgspec
from aiohttp import web

from edge.http.errors import RequestError
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
}
_encode: Final = msgspec.json.Encoder().encode
_ACCEPTED_BODY: Final = b"{}"


def accepted() -> web.Response:
    """202 to a single event."""
    return web.Response(status=202, body=_ACCEPTED_BODY, headers=_JSON_HEADERS)


def batch(accepted: int, rejected: list[RejectedEvent]) -> web.Response:
    """202 to a batch whose wrapper is valid, whatever became of its events (contract, section 2, point 2)."""
    body = _encode(BatchResponse(accepted, len(rejected), rejected))
    return web.Response(status=202, body=body, headers=_JSON_HEADERS)


def fault(found: RequestError) -> web.Response:
    """The declared answer to a fault."""
    body = ErrorBody(found.error.code, found.details, None)
    headers = dict(_JSON_HEADERS)
    if found.retry_after_ms is not None:
        # Rounded up to whole seconds (protocol, section 7); the body says it to the millisecond, and only for 429.
        headers["Retry-After"] = str(-(-found.retry_after_ms // 1000))
        if found.error is WireError.RATE_LIMITED:
            body = ErrorBody(found.error.code, found.details, found.retry_after_ms)
    return web.Response(status=found.error.status, body=_encode(body), headers=headers)


def wrong_method(allowed: str) -> web.Response:
    """405 with the methods that the path takes."""
    response = fault(RequestError(WireError.METHOD_NOT_ALLOWED, "method"))
    response.headers["Allow"] = allowed
    return response


def preflight() -> web.Response:
    """What a browser asks before it sends an event from another origin."""
    return web.Response(status=204, headers=_PREFLIGHT)


def document(body: bytes, content_type: str = JSON, status: int = 200) -> web.Response:
    """A page for people or machines: health, metrics, OpenAPI."""
    return web.Response(status=status, body=body, headers=_CORS | {"Content-Type": content_type})
