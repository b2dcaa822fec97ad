"""Answers as bytes: JSON of structs, and the one error shape (contract, section 4)."""

from typing import Any

import msgspec
from aiohttp import web

from dashboard.http.errors import HttpError
from schemas.errors import ErrorBody

_encoder = msgspec.json.Encoder()


def json_answer(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """A struct as JSON."""
    return web.Response(
        body=_encoder.encode(value), status=status, headers=headers, content_type="application/json"
    )


def redirect(place: str) -> web.Response:
    """Go to `place` with GET, as after a form."""
    return web.Response(status=303, headers={"Location": place})


def error_answer(refused: HttpError) -> web.Response:
    """The error shape: `{"error": CODE, "details"?: [...]}`."""
    retry = refused.headers.get("Retry-After") if refused.error.status == 429 else None
    body = ErrorBody(
        error=refused.error.code,
        details=refused.details,
        retryAfterMs=None if retry is None else int(retry) * 1000,
    )
    return json_answer(body, refused.error.status, refused.headers)
