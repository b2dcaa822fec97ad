"""`svc send --strict`: names the fields that the schema doesn't know, before anything is sent."""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from schemas.unknown_fields import UnknownField, unknown_fields

_MAX_FOUND = 100
"""Different unknown fields that are listed: names may be data, as many as events."""


class FieldUse(Struct):
    """The index of the first event with an unknown field, and the number of events with it."""

    first: int
    events: int = 0


def find_unknown(events: Iterable[bytes]) -> dict[UnknownField, FieldUse]:
    """The unknown fields of events, in the order of their first use."""
    found: dict[UnknownField, FieldUse] = {}
    for index, event in enumerate(events):
        for field in unknown_fields(event):
            if field in found or len(found) < _MAX_FOUND:
                found.setdefault(field, FieldUse(index)).events += 1
    return found


def as_objects(found: dict[UnknownField, FieldUse]) -> list[dict[str, Any]]:
    """For JSON: the dotted path of each, that of the nearest known field or null, and its use."""
    return [
        {
            "field": field.prefix + field.name,
            "nearest": field.prefix + field.nearest if field.nearest else None,
            "first": use.first,
            "events": use.events,
        }
        for field, use in found.items()
    ]


def as_lines(found: dict[UnknownField, FieldUse]) -> list[str]:
    """For people: a line each."""
    return [
        f"{each['field']}: unknown field in {each['events']:,} events, first in event {each['first']}"
        + (f"; did you mean {each['nearest']}?" if each["nearest"] else "")
        for each in as_objects(found)
    ]
