"""Breadcrumbs: the client's input, and each type's shape on the wire (protocol, 2.8 and 2.11)."""

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
"""Fields read from a mapping, which may be endless."""


class Breadcrumb(NamedTuple):
    """An immutable breadcrumb in the ring: bounded JSON values, no references to the program's objects."""

    ns: int
    type: str
    message: str | None
    level: str | None
    data: dict[str, Any]


def to_breadcrumb(ns: int, crumb: Mapping[str, Any] | str) -> Breadcrumb:
    """Convert the client's input: a text, or `message`, `type`, `level` and `data`, all optional.

    Other fields become data. An unknown type becomes `custom` and is stored in the data.
    """
    if isinstance(crumb, str):
        return Breadcrumb(ns, "custom", text_of(crumb), None, {})
    message, level, kind = crumb.get("message"), crumb.get("level"), crumb.get("type")
    raw = crumb.get("data")
    data = (
        plain_object(raw) if isinstance(raw, Mapping) else {} if raw is None else plain_object({"value": raw})
    )
    if more := {key: value for key, value in islice(crumb.items(), _MAX_FIELDS) if key not in _FIELDS}:
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
    """The form that `get_breadcrumbs` returns: the client's type, message and level, the data as sent."""
    fields = {**breadcrumb_on_wire(crumb), "type": crumb.type}
    if crumb.message is not None:
        fields["message"] = crumb.message
    if crumb.level is not None:
        fields["level"] = crumb.level
    return fields


def breadcrumb_on_wire(crumb: Breadcrumb) -> dict[str, Any]:
    """The form of section 2.8: one of five types, `data` with that type's keys; `track` is sent as `custom`."""
    data = _SHAPES[crumb.type](crumb)
    return {
        "timestamp": iso(crumb.ns),
        "type": "custom" if crumb.type == "track" else crumb.type,
        "data": data,
    }


def _with_message(crumb: Breadcrumb, message: str = "message") -> dict[str, Any]:
    """The data, with message and level added unless the data have these keys."""
    data = dict(crumb.data)
    if crumb.message is not None:
        data.setdefault(message, crumb.message)
    if crumb.level is not None:
        data.setdefault("level", crumb.level)
    return data


def _texts(data: dict[str, Any], *keys: str) -> dict[str, Any]:
    """The data with these keys as strings; null values are removed."""
    for key in keys:
        if key in data:
            value = data.pop(key)
            if value is not None:
                data[key] = text_of(value, TEXT_CHARS)
    return data


def _integers(data: dict[str, Any], *keys: str) -> dict[str, Any]:
    """The data with these keys as integers; values that are no number are removed."""
    for key in keys:
        if key in data:
            value = data.pop(key)
            try:
                data[key] = max(-(1 << 31), min(round(float(value)), (1 << 53) - 1))
            except (TypeError, ValueError, OverflowError):
                continue
    return data


def _nav(crumb: Breadcrumb) -> dict[str, Any]:
    data = _texts(_with_message(crumb, "to"), "from", "to")
    return data | {key: scrub(data[key]) for key in ("from", "to") if key in data}


def _net(crumb: Breadcrumb) -> dict[str, Any]:
    data = _texts(_integers(_with_message(crumb), "status", "durationMs"), "method", "url")
    return data | ({"url": scrub(data["url"])} if "url" in data else {})


def _log(crumb: Breadcrumb) -> dict[str, Any]:
    data = _texts(_with_message(crumb), "level", "message")
    return {"level": "info", "message": "", **data}


def _user(crumb: Breadcrumb) -> dict[str, Any]:
    return _texts(_with_message(crumb, "action"), "action", "target")


def _track(crumb: Breadcrumb) -> dict[str, Any]:
    return _with_message(crumb, "track")


_SHAPES: Final[dict[str, Callable[[Breadcrumb], dict[str, Any]]]] = {
    "nav": _nav,
    "net": _net,
    "log": _log,
    "user": _user,
    "track": _track,
    "custom": _with_message,
}
