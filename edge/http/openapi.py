"""The OpenAPI 3.1 document of the ingest interface, generated from the structs that decode it."""

import json
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from schemas.errors import BatchResponse, ErrorBody, WireError
from schemas.event import Event
from schemas.generate.json_schema import with_clean_descriptions
from schemas.limits import Limit

_REF: Final = "#/components/schemas/{name}"
_TIME_PATTERN: Final = (
    r"^[1-9][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
    r"(\.[0-9]{1,6})?(Z|\+00:00)$"
)


_ONE_OF_MANY: Final = (
    "an Event (#/components/schemas/Event); one that is none is rejected alone, with its index"
)


class EventBatch(Struct, frozen=True):
    """Body of a batch (section 2.9): whatever its events are, the wrapper is good."""

    events: Annotated[
        list[Annotated[Any, Meta(description=_ONE_OF_MANY)]], Meta(max_length=Limit.EVENTS_PER_BATCH.maximum)
    ]


def document() -> bytes:
    """The document as JSON."""
    schemas = _schemas()
    shared = {
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "project token: svc_pk_ and 26 characters",
                }
            },
        }
    }
    head = {
        "openapi": "3.1.0",
        "info": {
            "title": "Error ingestion",
            "version": "0.1",
            "description": "Protocol v0. Fields that the schema doesn't know are accepted and kept.",
        },
        "security": [{"token": []}],
        "paths": {
            "/v1/events": {"post": _operation("sendEvent", "Send one event", "Event", _EMPTY)},
            "/v1/events:batch": {
                "post": _operation("sendBatch", "Send up to 100 events", "EventBatch", _ref("BatchResponse"))
            },
        },
    }
    return json.dumps(head | shared).encode()


_EMPTY: Final = {"type": "object", "additionalProperties": False}
_FAULTS: Final = (
    WireError.VALIDATION_FAILED,
    WireError.UNAUTHORIZED,
    WireError.PAYLOAD_TOO_LARGE,
    WireError.RATE_LIMITED,
    WireError.INTERNAL,
    WireError.UNAVAILABLE,
)


def _operation(name: str, summary: str, body: str, success: dict[str, Any]) -> dict[str, Any]:
    return {
        "operationId": name,
        "summary": summary,
        "parameters": [_SDK_HEADER],
        "requestBody": {"required": True, "content": _content(_ref(body))},
        "responses": {
            "202": {"description": "received and on stable storage", "content": _content(success)},
            **{str(fault.status): _fault(fault) for fault in _FAULTS},
        },
    }


_SDK_HEADER: Final = {
    "name": "Svc-Sdk",
    "in": "header",
    "required": True,
    "description": "<sdk-name>/<sdk-version>",
    "schema": {"type": "string", "pattern": r"^[!-.0-~]{1,90}/[!-.0-~]{1,90}$"},
}


def _fault(fault: WireError) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": fault.sentence, "content": _content(_ref("ErrorBody"))}
    if fault in {WireError.RATE_LIMITED, WireError.UNAVAILABLE}:
        answer["headers"] = {
            "Retry-After": {"description": "seconds, rounded up", "schema": {"type": "integer", "minimum": 0}}
        }
    return answer


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": _REF.format(name=name)}


def _schemas() -> dict[str, Any]:
    _, found = msgspec.json.schema_components(
        [Event, EventBatch, BatchResponse, ErrorBody], ref_template=_REF
    )
    plain: dict[str, Any] = json.loads(json.dumps(with_clean_descriptions(found)), object_hook=_utc)
    return plain


def _utc(schema: dict[str, Any]) -> dict[str, Any]:
    """A time with an offset of zero: JSON Schema's date-time would allow any."""
    if schema.get("format") == "date-time":
        del schema["format"]
        schema["pattern"] = _TIME_PATTERN
    return schema
