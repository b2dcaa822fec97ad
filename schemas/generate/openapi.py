"""OpenAPI 3.1 documents, generated from operations and their structs; edge and read API share this writer."""

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import Struct

from schemas.errors import ErrorBody, WireError
from schemas.generate.json_schema import with_clean_descriptions
from schemas.version import service_version

JsonObject = dict[str, Any]
_REFERENCE: Final = "#/components/schemas/{name}"
_IN_PATH: Final = re.compile(r"\{(\w+)\}")
_RETRY_AFTER: Final[JsonObject] = {
    "Retry-After": {"description": "seconds, rounded up", "schema": {"type": "integer", "minimum": 0}}
}


class Described(Struct, frozen=True, kw_only=True):
    """One operation.

    `answer` and `body` are structs; None means an empty object or no body. `files` are the parts of a
    `multipart/form-data` body, the first of which is required. `headers` are those of the answer.
    """

    method: str
    path: str
    summary: str
    answer: type[Struct] | None
    name: str = ""
    body: type[Struct] | None = None
    files: tuple[str, ...] = ()
    query: type[Struct] | None = None
    path_schemas: dict[str, JsonObject] = {}
    parameters: tuple[JsonObject, ...] = ()
    status: int = 200
    description: str = "the answer"
    headers: JsonObject = {}
    responses: JsonObject = {}
    errors: Iterable[WireError] = ()


def document(
    title: str,
    description: str,
    security: dict[str, JsonObject],
    operations: Iterable[Described],
) -> JsonObject:
    """The document as JSON values; each of the `security` schemes suffices."""
    operations = list(operations)
    used = [
        kind for operation in operations for kind in (operation.answer, operation.body) if kind is not None
    ]
    kinds: list[type[Struct]] = list(dict.fromkeys([ErrorBody, *used]))
    references, components = msgspec.json.schema_components(kinds, ref_template=_REFERENCE)
    names = dict(zip(kinds, references, strict=True))
    paths: dict[str, JsonObject] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, names)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": service_version(), "description": description},
        "security": [{name: []} for name in security],
        "paths": paths,
        "components": {"schemas": with_clean_descriptions(components), "securitySchemes": security},
    }


def _operation(operation: Described, names: dict[type[Struct], JsonObject]) -> JsonObject:
    answer = (
        {"type": "object", "additionalProperties": False}
        if operation.answer is None
        else names[operation.answer]
    )
    described: JsonObject = {
        "summary": operation.summary,
        "operationId": operation.name or _name(operation),
        "parameters": [
            *(
                {"name": name, "in": "path", "required": True, "schema": operation.path_schemas[name]}
                for name in _IN_PATH.findall(operation.path)
            ),
            *(_query_parameters(operation.query) if operation.query else ()),
            *operation.parameters,
        ],
        "responses": {
            str(operation.status): {
                "description": operation.description,
                "content": _content(answer),
                **({"headers": operation.headers} if operation.headers else {}),
            },
            **operation.responses,
            **{
                str(error.status): _error(error, names[ErrorBody])
                for error in sorted(set(operation.errors), key=lambda error: error.status)
            },
        },
    }
    if operation.body is not None:
        described["requestBody"] = {"required": True, "content": _content(names[operation.body])}
    elif operation.files:
        parts = {
            name: {"type": "string", "contentMediaType": "application/octet-stream"}
            for name in operation.files
        }
        form = {"type": "object", "properties": parts, "required": list(operation.files[:1])}
        described["requestBody"] = {"required": True, "content": {"multipart/form-data": {"schema": form}}}
    return described


def _name(operation: Described) -> str:
    words = re.findall(r"[A-Za-z]+", operation.path.partition("/v1/")[2])
    return operation.method.lower() + "".join(word[0].upper() + word[1:] for word in words)


def _error(error: WireError, body: JsonObject) -> JsonObject:
    answer: JsonObject = {"description": error.sentence, "content": _content(body)}
    if error in {WireError.RATE_LIMITED, WireError.UNAVAILABLE}:
        answer["headers"] = _RETRY_AFTER
    return answer


def _content(schema: JsonObject) -> JsonObject:
    return {"application/json": {"schema": schema}}


def _query_parameters(kind: type[Struct]) -> list[JsonObject]:
    properties = msgspec.json.schema(kind)["$defs"][kind.__name__]["properties"]
    return [
        {"name": name, "in": "query", "required": False, "schema": _without_null(value)}
        for name, value in properties.items()
    ]


def _without_null(schema: JsonObject) -> JsonObject:
    # Optional parameters are omitted: in a query string, "null" would be a text.
    kinds = [kind for kind in schema.get("anyOf", []) if kind != {"type": "null"}]
    schema = {
        key: value for key, value in schema.items() if key not in {"anyOf", "default"} or value is not None
    }
    schema.pop("anyOf", None)
    return schema | kinds[0] if kinds else schema
