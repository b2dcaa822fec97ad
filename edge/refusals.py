"""The reason under which a refusal is counted, and the text of its example. Pure.

An example is for people of the project: it repeats the answer to the sender, with the event's release and id.
It has no other value of the event, no key that a client chose, and no text of a library that may quote
its input.
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Raw, Struct

from schemas.errors import Detail
from schemas.event import UUID7_PATTERN
from schemas.limits import Limit
from schemas.releases import is_release

MAX_EXAMPLE: Final = 300
"""Characters of an example."""
_MAX_RELEASE: Final = 100
_LIMIT_REASONS: Final = {limit.sentence: limit.title for limit in Limit}
_SCHEMA: Final = "schema"
_BODY_FIELDS: Final = ("body", "events")
"""The field named by violations of the body as a whole."""
_POSITION: Final = re.compile(r"\[\d+\]")
_CAUSES: Final = re.compile(r"(?:\.cause)+")
_OWN_KEYS: Final = re.compile(r"^(tags|user\.linkHashes|breadcrumbs(?:\[\d+\])?\.data)\..*", re.DOTALL)
_LIBRARY_TEXT: Final = re.compile(r"^(broken transfer): .*|^(Expected|Invalid|Object) .*", re.DOTALL)
"""Messages with a library's text that may quote its input."""
_UUID7: Final = re.compile(UUID7_PATTERN)
_NOTHING: Final = Raw(b"null")


class _Origin(Struct):
    id: Raw = _NOTHING
    release: Raw = _NOTHING


_decode_origin: Final = msgspec.json.Decoder(_Origin).decode
_decode_text: Final = msgspec.json.Decoder(str).decode
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def reason_of(details: Sequence[Detail]) -> str:
    """The reason of an invalid event or body: the exceeded limit, or the part that is invalid. A label of metrics."""
    counted = _counted(details)
    if counted.message in _LIMIT_REASONS:
        return _LIMIT_REASONS[counted.message]
    return counted.field if counted.field in _BODY_FIELDS else _SCHEMA


def with_field(reason: str, details: Sequence[Detail]) -> str:
    """The reason with the field that breaks the schema: `schema: error.stack.line`."""
    return f"{reason}: {field_of(_counted(details))}" if reason == _SCHEMA and details else reason


def field_of(detail: Detail) -> str:
    """The field of a violation, in a form that has few different values.

    It is without positions, keys that clients choose, and the depth of a cause.
    """
    path = _CAUSES.sub(".cause", _POSITION.sub("", detail.field))
    return _OWN_KEYS.sub(r"\1", path)


def example_of(details: Sequence[Detail], event: bytes | Raw | None = None) -> str:
    """The violation that names the reason, as it was answered, and where the event came from; empty without violations.

    `event` is the refused one, or a body that may be one.
    """
    if not details:
        return ""
    detail = _counted(details)
    message = _LIBRARY_TEXT.sub(lambda match: match[1] or "refused", detail.message)
    field = _OWN_KEYS.sub(r"\1", detail.field)
    text = f"{field}: {message}"[:MAX_EXAMPLE]
    origin = ", ".join(_origin(event)) if event and detail.field not in _BODY_FIELDS else ""
    whole = f"{text} ({origin})"
    return whole if origin and len(whole) <= MAX_EXAMPLE else text


def _counted(details: Sequence[Detail]) -> Detail:
    """The violation that a refusal is counted under."""
    return next((detail for detail in details if detail.message in _LIMIT_REASONS), details[0])


def _origin(event: bytes | Raw) -> list[str]:
    """Release and id of an event, if valid: an invalid field may contain anything."""
    try:
        origin = _decode_origin(event)
    except _UNREADABLE:
        return []
    release, event_id = _text(origin.release), _text(origin.id)
    found = []
    if len(release) <= _MAX_RELEASE and release.isprintable() and is_release(release):
        found.append(f"release {release}")
    if _UUID7.search(event_id):
        found.append(f"event {event_id.lower()}")
    return found


def _text(value: Raw) -> str:
    try:
        return _decode_text(value)
    except _UNREADABLE:
        return ""
