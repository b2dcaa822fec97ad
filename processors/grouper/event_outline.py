"""An event as processing reads it: the fields that decide its group, or that are counted; the rest stays bytes."""

from datetime import datetime

import msgspec
from msgspec import Raw, Struct

from grouping.fingerprint import GroupingEvent
from grouping.fingerprint.event_view import GroupingError, elements_of

ABSENT = Raw(b"null")


class UserOutline(Struct, gc=False):
    """The user: only the field that counting needs."""

    id: str | None = None


class EventOutline(Struct, gc=False, kw_only=True):
    """The fields of an event that processing reads.

    All that the edge accepts decodes here, from lenient projects too.
    """

    timestamp: datetime
    platform: str | None = None
    release: str = ""
    environment: str = ""
    user: UserOutline | None = None
    fingerprint: Raw = ABSENT
    error: Raw


class ErrorOutline(Struct, gc=False):
    """An error with its stack as raw JSON."""

    type: str | None = None
    message: str | None = None
    stack: Raw = ABSENT
    cause: "ErrorOutline | None" = None


def outline(event: EventOutline) -> ErrorOutline:
    """The error without its stacks. Raises msgspec.DecodeError."""
    return _decode_outline(event.error)


def stacks(error: ErrorOutline) -> tuple[tuple[str | None, bytes], ...]:
    """Type and raw stack of an error and its causes: with the platform, they decide the error's location."""
    chain = []
    link: ErrorOutline | None = error
    while link is not None:
        chain.append((link.type, bytes(link.stack)))
        link = link.cause
    return tuple(chain)


def without_stacks(event: EventOutline, error: ErrorOutline) -> GroupingEvent:
    """The part that decides the group when the error's location is known. Raises msgspec.DecodeError."""
    return GroupingEvent(_without_stack(error), event.platform, elements_of(event.fingerprint))


def _without_stack(error: ErrorOutline) -> GroupingError:
    cause = None if error.cause is None else _without_stack(error.cause)
    return GroupingError(error.type, error.message, None, cause)


def grouping_event(event: EventOutline) -> GroupingEvent:
    """The part that decides the group. Raises msgspec.DecodeError."""
    return GroupingEvent(_decode_error(event.error), event.platform, elements_of(event.fingerprint))


decode_event = msgspec.json.Decoder(EventOutline).decode
_decode_outline = msgspec.json.Decoder(ErrorOutline).decode
_decode_error = msgspec.json.Decoder(GroupingError).decode
