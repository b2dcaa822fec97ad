"""The OpenAPI 3.1 document, generated from the operations and their structs."""

import re
from collections.abc import Awaitable, Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import msgspec
from aiohttp import web

from dashboard.api.operation import KEY_HEADER, Nothing, Operation
from dashboard.http.paths import API
from dashboard.http.wire import json_answer
from schemas.errors import ErrorBody, WireError
from schemas.generate.json_schema import with_clean_descriptions

_REFERENCE: Final = "#/components/schemas/{name}"
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
_IN_PATH: Final = re.compile(r"\{(\w+)\}")
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
_TAGGED: Final[dict[str, Any]] = {
    "headers": {"ETag": {"description": "names what the answer says", "schema": {"type": "string"}}}
}
_UNCHANGED: Final[dict[str, Any]] = {
    "304": {"description": "the request's `If-None-Match` names what is still so", **_TAGGED}
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
    answers = [kind for o in operations for kind in (o.answer, o.body) if kind is not Nothing]
    kinds: list[type] = list(dict.fromkeys([ErrorBody, *answers]))
    names, components = _schemas(kinds)
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        path = API + _IN_PATH.sub(r"{\1}", operation.path)
        paths.setdefault(path, {})[operation.method.lower()] = _operation(operation, names)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Read API",
            "version": _version(),
            "description": "Projects, issues and their events. Times are ISO 8601, UTC, with milliseconds.",
        },
        "security": [{"password": []}, {"session": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "password": {"type": "http", "scheme": "basic", "description": "user `admin`"},
                "session": {"type": "apiKey", "in": "cookie", "name": "svc_session"},
            },
        },
    }


def _schemas(kinds: list[type]) -> tuple[dict[type, dict[str, Any]], dict[str, Any]]:
    found, components = msgspec.json.schema_components(kinds, ref_template=_REFERENCE)
    return dict(zip(kinds, found, strict=True)), with_clean_descriptions(components)


def _operation(operation: Operation, names: dict[type, dict[str, Any]]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "summary": operation.summary,
        "operationId": _operation_id(operation),
        "parameters": [
            *_path_parameters(operation.path),
            *_query_parameters(operation.query),
            *([_KEY] if operation.takes_key else []),
        ],
        "responses": {
            str(operation.status): {
                "description": "the answer",
                "content": {"application/json": {"schema": names[operation.answer]}},
                **(_TAGGED if operation.method == "GET" else {}),
            },
            **(_UNCHANGED if operation.method == "GET" else {}),
            **_errors(operation, names[ErrorBody]),
        },
    }
    if operation.body is not Nothing:
        described["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": names[operation.body]}},
        }
    return described


def _operation_id(operation: Operation) -> str:
    words = re.findall(r"[A-Za-z]+", operation.path)
    return operation.method.lower() + "".join(word[0].upper() + word[1:] for word in words)


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": _PATH_SCHEMAS[name]}
        for name in _IN_PATH.findall(path)
    ]


def _query_parameters(kind: type[msgspec.Struct]) -> list[dict[str, Any]]:
    schema = msgspec.json.schema(kind)
    properties = schema["$defs"][kind.__name__]["properties"]
    return [
        {"name": name, "in": "query", "required": False, "schema": _without_null(value)}
        for name, value in properties.items()
    ]


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    # In a query string "null" is a word; a parameter that may be left out is left out.
    kinds = [kind for kind in schema.get("anyOf", []) if kind != {"type": "null"}]
    shown = {
        key: value for key, value in schema.items() if key not in {"anyOf", "default"} or value is not None
    }
    shown.pop("anyOf", None)
    return shown | kinds[0] if kinds else shown


def _errors(operation: Operation, body: dict[str, Any]) -> dict[str, Any]:
    possible = list(_ALWAYS)
    if "{" in operation.path:
        possible.append(WireError.NOT_FOUND)
    if operation.method != "GET":
        possible.append(WireError.FORBIDDEN)
    if operation.body is not Nothing:
        possible.append(WireError.PAYLOAD_TOO_LARGE)
    if operation.takes_key:
        possible.append(WireError.CONFLICT)
    possible += operation.errors
    return {
        str(error.status): {
            "description": error.sentence,
            "content": {"application/json": {"schema": body}},
        }
        for error in sorted(set(possible), key=lambda error: error.status)
    }


def _version() -> str:
    try:
        return version("svc-service")
    except PackageNotFoundError:
        return "0.0.0"
