"""Converts arbitrary values to JSON that is bounded, finite and free of lone surrogates.

A value without a JSON equivalent becomes its `repr`. Errors in `__str__`, `__repr__` or `__iter__` are contained.
"""

import json
import math
import re
import reprlib
from collections.abc import Iterable, Mapping
from typing import Any

from svc.limits import TEXT_CHARS

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_SAFE_INTEGER = 1 << 63
_DEPTH = 5
_ITEMS = 50
_LARGE = 1_000
_CONTAINERS = frozenset({list, tuple, dict, set, frozenset})
_CHARS = 8_192
"""Limit for one value with everything in it."""
_TYPE_NAME = type.__dict__["__name__"]


def type_name(value: object) -> str:
    """The class name as stored by the interpreter: a metaclass may override `__name__`, or fail."""
    return clip(_TYPE_NAME.__get__(type(value)), 200)


def clip(text: str, limit: int = TEXT_CHARS) -> str:
    """The text cut to `limit` code points, with an ellipsis at the cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def text_of(value: object, limit: int = TEXT_CHARS) -> str:
    """The value as text: a string unchanged, otherwise `str`, then `repr`, then the type's name."""
    if type(value) is str:
        return clip(value, limit)
    if (large := _large(value)) is not None:
        return clip(large, limit)
    try:
        return clip(_exact(str(value)), limit)
    except Exception:
        return clip(_repr(value), limit)


def _exact(text: str) -> str:
    """The text as an exact `str`: a subclass may override length and slicing."""
    return str.__getitem__(text, slice(None))


def _large(value: object) -> str | None:
    """A short text for a large value, whose full text would need several times its size only to be cut."""
    if type(value) in {bytes, bytearray}:
        return repr(value[:TEXT_CHARS])  # type: ignore[index]
    if type(value) in _CONTAINERS and len(value) > _LARGE:  # type: ignore[arg-type]
        return f"<{type_name(value)} of {len(value)} items>"  # type: ignore[arg-type]
    return None


def plain(value: object) -> Any:
    """The value as bounded JSON types: null, booleans, numbers, strings, lists, objects with string keys."""
    kind = type(value)
    if value is None or kind is bool or (kind is str and len(value) <= TEXT_CHARS):  # type: ignore[arg-type]
        return value
    return _Converter().of(value, 0)


def plain_object(fields: Mapping[Any, Any]) -> dict[str, Any]:
    """A mapping as a JSON object, with one size budget for all its fields."""
    if type(fields) is dict and len(fields) <= _ITEMS:
        for key, value in fields.items():
            if not (type(key) is str and len(key) <= 100 and _is_small(value)):
                break
        else:
            return fields.copy()
    converted = _Converter().of(fields, 0)
    return converted if isinstance(converted, dict) else {"value": converted}


def _is_small(value: object) -> bool:
    kind = type(value)
    if kind is str:
        return len(value) <= 100  # type: ignore[arg-type]
    return (
        value is None
        or kind is bool
        # mypy doesn't know that `kind` is the value's type.
        or (kind is int and -_SAFE_INTEGER <= value < _SAFE_INTEGER)  # type: ignore[operator]
    )


def _number(value: int | float) -> int | float | str:
    if isinstance(value, float):
        real = float(value)
        return real if math.isfinite(real) else str(real)
    whole = int(value)
    return whole if -_SAFE_INTEGER <= whole < _SAFE_INTEGER else f"<integer of {whole.bit_length()} bits>"


class _Converter:
    """One traversal of a value, with its remaining size budget."""

    def __init__(self) -> None:
        self._chars = _CHARS

    def of(self, value: object, depth: int) -> Any:
        if value is None or value is True or value is False:
            return value
        try:
            return self._read(value, depth)
        except Exception:
            return self._text(f"<unreadable {type_name(value)}>")

    def _read(self, value: object, depth: int) -> Any:
        if isinstance(value, (int, float)):
            return _number(value)
        if depth < _DEPTH:
            if isinstance(value, Mapping):
                return self._mapping(value, depth)
            if isinstance(value, (list, tuple, set, frozenset)):
                return self._list(value, depth)
        elif type(value) in _CONTAINERS:
            return self._text(_deep_repr(value))
        return self._text(text_of(value) if isinstance(value, str) else _repr(value))

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        converted: dict[str, Any] = {}
        for key, item in value.items():
            if len(converted) >= _ITEMS or self._chars <= 0:
                converted["…"] = "cut"
                break
            name = self._text(text_of(key, 200))
            converted[name] = self.of(item, depth + 1)
        return converted

    def _list(self, items: Iterable[Any], depth: int) -> list[Any]:
        converted: list[Any] = []
        for item in items:
            if len(converted) >= _ITEMS or self._chars <= 0:
                converted.append("…")
                break
            converted.append(self.of(item, depth + 1))
        return converted

    def _text(self, text: str) -> str:
        text = clip(text, max(1, min(TEXT_CHARS, self._chars)))
        self._chars -= len(text)
        return text


def _deep_repr(value: object) -> str:
    """The `repr` of a too deeply nested container, limited to its outermost items."""
    brief = reprlib.Repr()
    brief.maxlevel, brief.maxstring, brief.maxother = 2, TEXT_CHARS, TEXT_CHARS
    return brief.repr(value)


def _repr(value: object) -> str:
    try:
        return clip(_large(value) or _exact(repr(value)))
    except Exception:
        return f"<unprintable {type_name(value)}>"


def encode(value: object) -> bytes:
    """Compact JSON in UTF-8; lone surrogates become U+FFFD, as on the server.

    Raises ValueError for circular references and non-finite numbers.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=text_of)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return wellformed(text).encode()


def wellformed(text: str) -> str:
    """The text with U+FFFD for lone surrogates, as on the server."""
    return _LONE_SURROGATE.sub("\ufffd", text)
