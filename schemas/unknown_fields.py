"""Fields of an event that the schema doesn't know, with the nearest known one. Pure.

They are accepted and kept (contract, section 2, point 6), so a misspelt optional field is lost without a
word. The search covers the event itself and its objects `device`, `app`, `user` and `error`, but not frames,
causes or breadcrumbs.
"""

from difflib import get_close_matches
from functools import cache
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw, Struct, structs

from schemas.event import App, Device, Error, Event, User

_OBJECTS: Final = {"device": Device, "app": App, "user": User, "error": Error}
_LEAST: Final = 0.7
"""Minimum similarity (0 to 1, of `difflib`) of a suggested field. At 0.6 `secret` is near `user`."""
_MAX_FIELDS: Final = 20
"""Unknown fields of an object that are looked at: a comparison takes a tenth of a millisecond."""
_MAX_NAME_LENGTH: Final = 32
"""Longer names are similar to no field, and slow to compare."""
_decode: Final = msgspec.json.Decoder(dict[str, Raw]).decode


class UnknownField(NamedTuple):
    """An unknown name in an object of the event, and the nearest known one, "" if none is near.

    `prefix` is the dotted path of the object: "", or with a dot at its end.
    """

    prefix: str
    name: str
    nearest: str


def unknown_fields(event: bytes | Raw) -> list[UnknownField]:
    """The unknown fields, up to 20 of each object; none of what is no JSON object."""
    fields = _fields(event)
    found = _unknown("", fields, _names(Event))
    for name, kind in _OBJECTS.items():
        if name in fields:
            found += _unknown(f"{name}.", _fields(fields[name]), _names(kind))
    return found


@cache
def _names(kind: type[Struct]) -> tuple[str, ...]:
    return tuple(field.encode_name for field in structs.fields(kind))


def _fields(value: bytes | Raw) -> dict[str, Raw]:
    try:
        return _decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}


def _unknown(prefix: str, fields: dict[str, Raw], known: tuple[str, ...]) -> list[UnknownField]:
    unknown = [name for name in fields if name not in known][:_MAX_FIELDS]
    return [UnknownField(prefix, name, _nearest(name, known)) for name in unknown]


def _nearest(name: str, known: tuple[str, ...]) -> str:
    """The known name that is most similar, ignoring case."""
    spelled = {each.lower(): each for each in known}
    close = get_close_matches(name.lower(), spelled, 1, _LEAST) if len(name) <= _MAX_NAME_LENGTH else []
    return spelled[close[0]] if close else ""
