"""The OpenAPI 3.1 document, generated from the operations and their structs."""

import re
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, Final

from aiohttp import web

from dashboard.api.operation import KEY_HEADER, NoInput, Operation
from dashboard.http.paths import API
from dashboard.http.responses import json_response
from schemas.errors import WireError
from schemas.generate import openapi
from schemas.generate.openapi import Described

_ALWAYS: Final = (
    WireError.VALIDATION_FAILED,
    WireError.UNAUTHORIZED,
    WireError.FORBIDDEN,
    WireError.RATE_LIMITED,
    WireError.INTERNAL,
    WireError.UNAVAILABLE,
)
_KEY: Final[dict[str, Any]] = {
    "name": KEY_HEADER,
    "in": "header",
    "required": False,
    "schema": {"type": "string"},
    "description": "a request repeated with its key makes one change; another request with the key gets 409",
}
_PATH_PARAMETER: Final = re.compile(r"\{(\w+)(?::[^}]*)?\}")
_PATH_SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    "project": {"type": "string", "pattern": "^[0-9]{1,10}$", "description": "a project's id"},
    "issue": {"type": "string", "pattern": "^[0-9a-f]{16}$", "description": "an issue's id"},
    "event": {
        "description": "an event's id, or `latest` or `oldest`",
        "anyOf": [{"type": "string", "format": "uuid"}, {"enum": ["latest", "oldest"]}],
    },
    "token": {"type": "string", "pattern": "^svc_pk_[0-9a-z]{26}$", "description": "a project token"},
    "apiKey": {"type": "string", "pattern": "^[0-9a-f]{16}$", "description": "a key's id"},
    "view": {"type": "string", "pattern": "^[0-9a-f]{16}$", "description": "a saved view's id"},
    "key": {"type": "string", "minLength": 1, "maxLength": 64, "description": "a tag's key"},
    "field": {
        "type": "string",
        "minLength": 1,
        "maxLength": 64,
        "description": "a field of the query language, such as `release`",
    },
}
_ETAG: Final[dict[str, Any]] = {
    "ETag": {"description": "identifies the content of the answer", "schema": {"type": "string"}}
}
_NOT_MODIFIED: Final[dict[str, Any]] = {
    "304": {"description": "not modified: `If-None-Match` names the current ETag", "headers": _ETAG}
}
_SECURITY: Final = {
    "password": {"type": "http", "scheme": "basic", "description": "user `admin`"},
    "key": {"type": "http", "scheme": "bearer", "description": "a program's key, `svc_sk_…`"},
    "session": {"type": "apiKey", "in": "cookie", "name": "svc_session"},
}


@cache
def serve_document(
    operations: tuple[Operation, ...],
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """A handler that serves the document, built once."""
    built = document(operations)

    async def serve(_request: web.Request) -> web.StreamResponse:
        return json_response(built)

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
    is_read = operation.method == "GET"
    return Described(
        method=operation.method,
        path=API + _PATH_PARAMETER.sub(r"{\1}", operation.path),
        summary=operation.summary,
        path_schemas=_PATH_SCHEMAS,
        query=operation.query,
        parameters=(_KEY,) if operation.takes_key else (),
        body=None if operation.body is NoInput else operation.body,
        files=operation.files,
        answer=operation.answer,
        status=operation.status,
        headers=_ETAG if is_read else {},
        responses=_NOT_MODIFIED if is_read else {},
        errors=_errors(operation),
    )


def _errors(operation: Operation) -> list[WireError]:
    errors = [*_ALWAYS, *operation.errors]
    if "{" in operation.path:
        errors.append(WireError.NOT_FOUND)
    if operation.body is not NoInput or operation.files:
        errors.append(WireError.PAYLOAD_TOO_LARGE)
    if operation.takes_key:
        errors.append(WireError.CONFLICT)
    return errors
