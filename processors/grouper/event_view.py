"""What processing reads of each event, in one decode: what an issue's aggregate needs, and the error as raw JSON.

Events of one problem repeat the same error byte for byte more often than not: what it says is then known without decoding it.
"""

from datetime import datetime
from typing import Any

import msgspec
from msgspec import Raw, Struct

from grouping.fingerprint import GroupingEvent
from grouping.fingerprint.event_view import GroupingError

ABSENT = Raw(b"null")


class UserOutline(Struct, gc=False):
    """The user, as far as counting needs."""

    id: str | None = None


class EventOutline(Struct, gc=False, kw_only=True):
    """An accepted event. What the edge admits decodes here, from lenient projects too."""

    timestamp: datetime
    platform: str | None = None
    release: str = ""
    environment: str = ""
    user: UserOutline | None = None
    fingerprint: Raw = ABSENT
    error: Raw


class ErrorOutline(Struct, gc=False):
    """An error whose stack is not decoded."""

    type: str | None = None
    message: str | None = None
    stack: Raw = ABSENT
    cause: "ErrorOutline | None" = None


def outline(event: EventOutline) -> ErrorOutline:
    """The error but for its stacks. Raises msgspec.DecodeError."""
    return _decode_outline(event.error)


def stacks(error: ErrorOutline) -> tuple[tuple[str | None, bytes], ...]:
    """Type and raw stack of an error and its causes: with the platform, all that decides about places."""
    found = []
    link: ErrorOutline | None = error
    while link is not None:
        found.append((link.type, bytes(link.stack)))
        link = link.cause
    return tuple(found)


def without_stacks(event: EventOutline, error: ErrorOutline) -> GroupingEvent:
    """The part that decides the group where places are known. Raises msgspec.DecodeError."""
    return GroupingEvent(_without_stack(error), event.platform, _decode_elements(event.fingerprint))


def _without_stack(error: ErrorOutline) -> GroupingError:
    cause = None if error.cause is None else _without_stack(error.cause)
    return GroupingError(error.type, error.message, None, cause)


def grouping_event(event: EventOutline) -> GroupingEvent:
    """The part that decides the group. Raises msgspec.DecodeError."""
    return GroupingEvent(_decode_error(event.error), event.platform, _decode_elements(event.fingerprint))


def id_text(raw: bytes) -> str:
    """A 16-byte uuid in its canonical text, several times faster than `uuid.UUID`."""
    digits = raw.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


decode_event = msgspec.json.Decoder(EventOutline).decode
_decode_outline = msgspec.json.Decoder(ErrorOutline).decode
_decode_error = msgspec.json.Decoder(GroupingError).decode
_decode_elements = msgspec.json.Decoder(list[Any] | None).decode
