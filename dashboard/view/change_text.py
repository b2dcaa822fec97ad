"""Records of who changed what, in words. Pure."""

import re
from typing import Any

import msgspec

_CAPITAL = re.compile(r"(?<=[a-z])([A-Z])")


def words(name: str) -> str:
    """A kind or a field in words: `tokenRevoked` is "Token revoked"."""
    return _CAPITAL.sub(lambda found: f" {found[1].lower()}", name).capitalize()


def values(text: str) -> list[tuple[str, str]]:
    """The fields of one side of a change, in words; of a text that was cut the text alone."""
    try:
        found = msgspec.json.decode(text) if text else {}
    except msgspec.DecodeError:
        found = None
    if not isinstance(found, dict):
        return [("", text)]
    return [(words(name), _value(value)) for name, value in found.items()]


def _value(value: Any) -> str:
    if isinstance(value, list):
        return "; ".join(map(_value, value)) or "none"
    if isinstance(value, dict):
        given = {name: each for name, each in value.items() if each not in (None, "", [], {})}
        return ", ".join(f"{words(name).lower()} {_value(each)}" for name, each in given.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value in (None, "") else str(value)
