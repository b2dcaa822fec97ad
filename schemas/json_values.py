"""Decodes any JSON value that the edge accepts, whatever its numbers. Pure."""

import json
from math import isfinite
from typing import Any, Final

import msgspec

_MAX_DIGITS: Final = 4300
"""Python neither reads nor writes an integer with more."""


def decode_any(text: bytes) -> Any:
    """The value; a number that Python can't hold, such as 1E+400, is its own text.

    Raises ValueError or RecursionError if it isn't JSON.
    """
    try:
        return msgspec.json.decode(text)
    except msgspec.ValidationError:
        return json.loads(text, parse_int=_integer, parse_float=_fraction)


def _integer(text: str) -> int | str:
    return int(text) if len(text) <= _MAX_DIGITS else text


def _fraction(text: str) -> float | str:
    number = float(text)
    return number if isfinite(number) else text
