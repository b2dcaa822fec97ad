"""The OpenAPI 3.1 document, generated from the operations and their structs."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web

from dashboard.api.operation import KEY_HEADER, NoInput, Operation
from dashboard.http.paths import API
from dashboard.http.wire import json_answer
from schemas.errors import WireError
from schemas.generate import openapi
from schemas.generate.openapi import Described

_ALWAYS: Final = (
    WireError.VALIDATION_FAILED,
    WireError.UNAUTHORIZED,
    WireError.RATE_LIMITED,
    WireError.INTERNAL,
    WireError.UNAVAILABLE,
)
_KEY: Final[dict[str, Any]] = {
    "name": KEY_HEADER,
    "in": "header",
    "required": False,
    "schema": {"type": "string"},
    "description": "the same request under the same key is one change; another request under it is 409",
}
_IN_PATH: Final = re.compile(r"\{(\w+)(?::[^}]*)?\}")
_PATH_SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    "project": {"type": "string", "pattern": "^[0-9]{1,10}$", "description": "a project's id"},
    "issue": {"type": "string", "pattern": "^[0-9a-f]{16}$", "description": "an issue's id"},
    "event": {
        "description": "an event's id, or `latest` or `oldest`",
        "anyOf": [{"type": "string", "format": "uuid"}, {"enum": ["latest", "oldest"]}],
    },
    "token": {"type": "string", "pattern": "^svc_pk_[0-9a-z]{26}$", "description": "a project token"},
    "view": {"type": "string", "pattern": "^[0-9a-f]{16}$", "description": "a saved view's id"},
    "key": {"type": "string", "minLength": 1, "maxLength": 64, "description": "a tag's key"},
}
_TAG: Final[dict[str, Any]] = {
    "ETag": {"description": "names what the answer says", "schema": {"type": "string"}}
}
_UNCHANGED: Final[dict[str, Any]] = {
    "304": {"description": "the request's `If-None-Match` names what is still so", "headers": _TAG}
}
_SECURITY: Final = {
    "password": {"type": "http", "scheme": "basic", "description": "user `admin`"},
    "session": {"type": "apiKey", "in": "cookie", "name": "svc_session"},
}


def serve_document(
    operations: tuple[Operation, ...],
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """A handler that answers the document, made once."""
    made = document(operations)

    async def serve(_request: web.Request) -> web.StreamResponse:
        return json_answer(made)

    return serve


def document(operations: tuple[Operation, ...]) -> dict[str, Any]:
    """The document as JSON values."""
    return openapi.document(
        "Read API",
        "Projects, issues and their events. Times are ISO 8601, UTC, with milliseconds.",
        _SECURITY,
        map(_described, operations),
    )


def _described(operation: Operation) -> Described:
    read = operation.method == "GET"
    return Described(
        method=operation.method,
        path=API + _IN_PATH.sub(r"{\1}", operation.path),
        summary=operation.summary,
        path_schemas=_PATH_SCHEMAS,
        query=operation.query,
        parameters=(_KEY,) if operation.takes_key else (),
        body=None if operation.body is NoInput else operation.body,
        answer=operation.answer,
        status=operation.status,
        headers=_TAG if read else {},
        responses=_UNCHANGED if read else {},
        errors=_errors(operation),
    )


def _errors(operation: Operation) -> list[WireError]:
    possible = [*_ALWAYS, *operation.errors]
    if "{" in operation.path:
        possible.append(WireError.NOT_FOUND)
    if operation.method != "GET":
        possible.append(WireError.FORBIDDEN)
    if operation.body is not NoInput:
        possible.append(WireError.PAYLOAD_TOO_LARGE)
    if operation.takes_key:
        possible.append(WireError.CONFLICT)
    return possible
