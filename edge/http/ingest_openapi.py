"""The OpenAPI 3.1 document of the ingest API, generated from the structs that decode its bodies."""

import json
from functools import cache
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from schemas.errors import BatchResponse, WireError
from schemas.event import Event
from schemas.generate import openapi
from schemas.generate.openapi import Described
from schemas.limits import Limit

_TIME_PATTERN: Final = (
    r"^[1-9][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
    r"(\.[0-9]{1,6})?(Z|\+00:00)$"
)
_ONE_OF_MANY: Final = (
    "an Event (#/components/schemas/Event); one that is none is rejected alone, with its index"
)
_TOKEN: Final = {
    "type": "http",
    "scheme": "bearer",
    "description": "project token: svc_pk_ and 26 characters",
}
_SDK_HEADER: Final = {
    "name": "Svc-Sdk",
    "in": "header",
    "required": True,
    "description": "<sdk-name>/<sdk-version>",
    "schema": {"type": "string", "pattern": r"^[!-.0-~]{1,90}/[!-.0-~]{1,90}$"},
}
_ERRORS: Final = (
    WireError.VALIDATION_FAILED,
    WireError.UNAUTHORIZED,
    WireError.PAYLOAD_TOO_LARGE,
    WireError.RATE_LIMITED,
    WireError.INTERNAL,
    WireError.UNAVAILABLE,
)


class EventBatch(Struct, frozen=True):
    """Body of a batch (section 2.9): an invalid event doesn't make the wrapper invalid."""

    events: Annotated[
        list[Annotated[Any, Meta(description=_ONE_OF_MANY)]], Meta(max_length=Limit.EVENTS_PER_BATCH.maximum)
    ]


@cache
def document() -> bytes:
    """The document as JSON."""
    content = openapi.document(
        "Error ingestion",
        "Protocol v0. Fields that the schema doesn't know are accepted and kept.",
        {"token": _TOKEN},
        [
            _post("/v1/events", "sendEvent", "Send one event", Event, None),
            _post("/v1/events:batch", "sendBatch", "Send up to 100 events", EventBatch, BatchResponse),
        ],
    )
    return json.dumps(json.loads(json.dumps(content), object_hook=_utc)).encode()


def _post(path: str, name: str, summary: str, body: type[Struct], answer: type[Struct] | None) -> Described:
    return Described(
        method="POST",
        path=path,
        name=name,
        summary=summary,
        parameters=(_SDK_HEADER,),
        body=body,
        answer=answer,
        status=202,
        description="received and on stable storage",
        errors=_ERRORS,
    )


def _utc(schema: dict[str, Any]) -> dict[str, Any]:
    """Restrict a time to UTC: JSON Schema's date-time would allow any offset."""
    if schema.get("format") == "date-time":
        del schema["format"]
        schema["pattern"] = _TIME_PATTERN
    return schema
