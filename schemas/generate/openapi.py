"""OpenAPI 3.1 documents, generated from operations and the structs that they read and answer."""

import re
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import msgspec
from msgspec import Struct

from schemas.errors import ErrorBody, WireError
from schemas.generate.json_schema import with_clean_descriptions

JsonObject = dict[str, Any]
_REFERENCE: Final = "#/components/schemas/{name}"
_IN_PATH: Final = re.compile(r"\{(\w+)\}")
_RETRY_AFTER: Final[JsonObject] = {
    "Retry-After": {"description": "seconds, rounded up", "schema": {"type": "integer", "minimum": 0}}
}


class Described(Struct, frozen=True, kw_only=True):
    """One operation. `answer` and `body` are structs, None for an empty object and no body; `headers` go with the answer."""

    method: str
    path: str
    summary: str
    answer: type[Struct] | None
    name: str = ""
    body: type[Struct] | None = None
    query: type[Struct] | None = None
    path_schemas: dict[str, JsonObject] = {}
    parameters: tuple[JsonObject, ...] = ()
    status: int = 200
    said: str = "the answer"
    headers: JsonObject = {}
    responses: JsonObject = {}
    errors: Iterable[WireError] = ()


def document(
    title: str,
    description: str,
    security: dict[str, JsonObject],
    operations: Iterable[Described],
    *,
    also: Iterable[type[Struct]] = (),
) -> JsonObject:
    """The document as JSON values. Any one of the `security` schemes lets in; `also` are structs that prose refers to."""
    described = list(operations)
    used = [kind for each in described for kind in (each.answer, each.body) if kind is not None]
    kinds: list[type[Struct]] = list(dict.fromkeys([ErrorBody, *also, *used]))
    found, components = msgspec.json.schema_components(kinds, ref_template=_REFERENCE)
    names = dict(zip(kinds, found, strict=True))
    paths: dict[str, JsonObject] = {}
    for each in described:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, names)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": _version(), "description": description},
        "security": [{name: []} for name in security],
        "paths": paths,
        "components": {"schemas": with_clean_descriptions(components), "securitySchemes": security},
    }


def _operation(each: Described, names: dict[type[Struct], JsonObject]) -> JsonObject:
    answer = {"type": "object", "additionalProperties": False} if each.answer is None else names[each.answer]
    said: JsonObject = {
        "summary": each.summary,
        "operationId": each.name or _name(each),
        "parameters": [
            *(
                {"name": name, "in": "path", "required": True, "schema": each.path_schemas[name]}
                for name in _IN_PATH.findall(each.path)
            ),
            *(_query_parameters(each.query) if each.query else ()),
            *each.parameters,
        ],
        "responses": {
            str(each.status): {
                "description": each.said,
                "content": _content(answer),
                **({"headers": each.headers} if each.headers else {}),
            },
            **each.responses,
            **{
                str(error.status): _error(error, names[ErrorBody])
                for error in sorted(set(each.errors), key=lambda error: error.status)
            },
        },
    }
    if each.body is not None:
        said["requestBody"] = {"required": True, "content": _content(names[each.body])}
    return said


def _name(each: Described) -> str:
    words = re.findall(r"[A-Za-z]+", each.path.partition("/v1/")[2])
    return each.method.lower() + "".join(word[0].upper() + word[1:] for word in words)


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
    # In a query string "null" is a word; a parameter that may be left out is left out.
    kinds = [kind for kind in schema.get("anyOf", []) if kind != {"type": "null"}]
    shown = {
        key: value for key, value in schema.items() if key not in {"anyOf", "default"} or value is not None
    }
    shown.pop("anyOf", None)
    return shown | kinds[0] if kinds else shown


def _version() -> str:
    try:
        return version("svc-service")
    except PackageNotFoundError:
        return "0.0.0"
