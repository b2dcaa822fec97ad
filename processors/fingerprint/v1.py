"""Grouping mechanism v1: error type, engine-neutral fault and the first cleaned frames of the app; else the message."""

from processors.fingerprint.faults import fault
from processors.fingerprint.forms import ErrorForm, GroupingEvent
from processors.fingerprint.frames import Family, Role
from processors.fingerprint.messages import template
from processors.fingerprint.stacks import NOWHERE, Place, place_of

# The protocol's limit of the cause chain, plus the error itself.
_CHAIN = 11


def decide(event: GroupingEvent) -> tuple[str, tuple[str, ...]]:
    """The step that decided ("stack" or "message") and the parts to hash."""
    platform = event.platform
    top = event.error
    chain = _chain(top)
    places = [place_of(platform, error) for error in chain]
    index = _deciding(places)
    if index is None:
        root = chain[-1]
        return "message", _message_parts(top, root)
    error, place = chain[index], places[index]
    parts = _error_parts(error, place)
    if index:
        parts = [
            f"type {_type(top)}",
            *(f"frame {site.text}" for site in _own(places[0])),
            *(f"cause {part}" for part in parts),
        ]
    return "stack", tuple(parts)


def _own(place: Place):
    return (
        place.sites[:1] if place.role is Role.APP and not place.minified and not place.sites[0].vague else ()
    )


def _type(error: ErrorForm) -> str:
    return (error.type or "")[:200]


def _chain(error: ErrorForm) -> list[ErrorForm]:
    chain = [error]
    while error.cause is not None and len(chain) < _CHAIN:
        error = error.cause
        chain.append(error)
    return chain


def _deciding(places: list[Place]) -> int | None:
    """The deepest error whose stack shows the app; else the deepest with a stack."""
    for role in (Role.APP, Role.LIBRARY, Role.PLATFORM):
        for index in range(len(places) - 1, -1, -1):
            if places[index].role is role:
                return index
    return None


def _message_parts(top: ErrorForm, root: ErrorForm) -> tuple[str, ...]:
    parts = [f"type {_type(top)}", f"message {template((root.message or '')[:600])}"]
    return tuple(parts)


def _error_parts(error: ErrorForm, place: Place) -> list[str]:
    message = (error.message or "")[:600]
    javascript = place.sites[0].family is Family.JAVASCRIPT
    known = fault(message) if javascript else None
    parts = [f"type {_type(error)}" if known != "deep" else "type stack overflow"]
    if known:
        parts.append(f"fault {known}")
    if place.minified:
        if not known:
            parts.append(f"message {template(message)}")
        parts.append(f"file {place.sites[0].place}")
        return parts
    parts.extend(f"frame {site.text}" for site in place.sites)
    if not known and (place.role is not Role.APP or place.sites[0].vague):
        parts.append(f"message {template(message)}")
    return parts


def culprit(event: GroupingEvent) -> str:
    """The deciding frame, for people: `function in file`, or an empty text."""
    places = [place_of(event.platform, error) for error in _chain(event.error)]
    index = _deciding(places)
    return places[index].sites[0].text if index is not None else ""
