"""Breadcrumbs: what the application says, and the shape that the wire wants of each type (protocol, 2.8 and 2.11)."""

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from svc.limits import TEXT_CHARS
from svc.plain import plain_object, text_of
from svc.timestamps import iso
from svc.urls import scrub

CLIENT_TYPES: Final = frozenset({"custom", "log", "nav", "net", "track", "user"})
_FIELDS: Final = frozenset({"message", "type", "level", "data"})
_MAX_FIELDS: Final = 1_000
"""That are looked at: a mapping of the program's own may have no end."""


class Breadcrumb(NamedTuple):
    """A breadcrumb in the ring: bounded plain values, nothing of the program's own objects; never changed again."""

    ns: int
    type: str
    message: str | None
    level: str | None
    data: dict[str, Any]


def to_breadcrumb(ns: int, given: Mapping[str, Any] | str) -> Breadcrumb:
    """The client's input (`message`, `type`, `level`, `data`, all optional; a text is a message) as a crumb.

    Fields beside these four become data. A type unknown here becomes `custom` and is kept in the data.
    """
    if isinstance(given, str):
        return Breadcrumb(ns, "custom", text_of(given), None, {})
    message, level, kind = given.get("message"), given.get("level"), given.get("type")
    raw = given.get("data")
    data = (
        plain_object(raw) if isinstance(raw, Mapping) else {} if raw is None else plain_object({"value": raw})
    )
    if more := {key: value for key, value in islice(given.items(), _MAX_FIELDS) if key not in _FIELDS}:
        data = {**plain_object(more), **data}
    if kind is None:
        kind = "custom"
    elif kind not in CLIENT_TYPES:
        data.setdefault("type", text_of(kind, 64))
        kind = "custom"
    return Breadcrumb(
        ns,
        kind,
        None if message is None else text_of(message),
        None if level is None else text_of(level, 64),
        data,
    )


def breadcrumb_for_client(crumb: Breadcrumb) -> dict[str, Any]:
    """What `get_breadcrumbs` shows: the client's type and words, the data as they will travel."""
    shown: dict[str, Any] = {
        "timestamp": iso(crumb.ns),
        "type": crumb.type,
        "data": breadcrumb_on_wire(crumb)["data"],
    }
    if crumb.message is not None:
        shown["message"] = crumb.message
    if crumb.level is not None:
        shown["level"] = crumb.level
    return shown


def breadcrumb_on_wire(crumb: Breadcrumb) -> dict[str, Any]:
    """A breadcrumb of section 2.8: one of five types, `data` with that type's keys; `track` travels as `custom`."""
    data = _SHAPES[crumb.type](crumb)
    return {
        "timestamp": iso(crumb.ns),
        "type": "custom" if crumb.type == "track" else crumb.type,
        "data": data,
    }


def _with_words(crumb: Breadcrumb, message: str = "message") -> dict[str, Any]:
    """The data with the message and the level in them, wherever the data do not speak of these themselves."""
    data = dict(crumb.data)
    if crumb.message is not None:
        data.setdefault(message, crumb.message)
    if crumb.level is not None:
        data.setdefault("level", crumb.level)
    return data


def _texts(data: dict[str, Any], *keys: str) -> dict[str, Any]:
    """The same data with these keys as strings; null is as if it were left out."""
    for key in keys:
        if key in data:
            value = data.pop(key)
            if value is not None:
                data[key] = text_of(value, TEXT_CHARS)
    return data


def _integers(data: dict[str, Any], *keys: str) -> dict[str, Any]:
    """The same data with these keys as integers; what is no number is left out."""
    for key in keys:
        if key in data:
            value = data.pop(key)
            try:
                data[key] = max(-(1 << 31), min(round(float(value)), (1 << 53) - 1))
            except (TypeError, ValueError, OverflowError):
                continue
    return data


def _nav(crumb: Breadcrumb) -> dict[str, Any]:
    data = _texts(_with_words(crumb, "to"), "from", "to")
    return data | {key: scrub(data[key]) for key in ("from", "to") if key in data}


def _net(crumb: Breadcrumb) -> dict[str, Any]:
    data = _texts(_integers(_with_words(crumb), "status", "durationMs"), "method", "url")
    return data | ({"url": scrub(data["url"])} if "url" in data else {})


def _log(crumb: Breadcrumb) -> dict[str, Any]:
    data = _texts(_with_words(crumb), "level", "message")
    return {"level": "info", "message": "", **data}


def _user(crumb: Breadcrumb) -> dict[str, Any]:
    return _texts(_with_words(crumb, "action"), "action", "target")


def _track(crumb: Breadcrumb) -> dict[str, Any]:
    return _with_words(crumb, "track")


_SHAPES: Final[dict[str, Callable[[Breadcrumb], dict[str, Any]]]] = {
    "nav": _nav,
    "net": _net,
    "log": _log,
    "user": _user,
    "track": _track,
    "custom": _with_words,
}
