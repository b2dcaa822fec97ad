"""Checks the format of timestamps (contract, section 2, point 6). Pure.

msgspec accepts more: a blank or `t` for `T`, `z`, `+0000`, `-00:00`. So timestamps are decoded as strings and
checked here, many together if each has milliseconds and `Z`, as the protocol requires.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from schemas.event import TIME_PATTERN

_LINE_LENGTH: Final = len("2026-01-31T12:00:00.000Z\n")
_DATE: Final = (
    r"[1-9]\d{3}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])"
    r"|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
)
"""The days of every year: February 29 is looked up."""
_are_lines: Final = re.compile(
    rf"(?:{_DATE}T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{{3}}Z\n)*+", re.ASCII
).fullmatch
_search: Final = re.compile(TIME_PATTERN).search


def are_utc(texts: Sequence[str]) -> bool:
    """Whether every text passes `is_utc`."""
    return are_canonical(texts) or all(map(is_utc, texts))


def is_utc(text: str) -> bool:
    """Whether a text is ISO 8601 in UTC and a time that every decoder accepts: no February 30, no second 60."""
    if not _search(text):
        return False
    try:
        msgspec.convert(text, datetime)
    except msgspec.ValidationError:
        return False
    return True


def are_canonical(texts: Sequence[str]) -> bool:
    """Whether each text is a time from the year 1000 on, with milliseconds and `Z`, and not of a February 29."""
    lines = "\n".join(texts) + "\n"
    # Each text is at least a line; one with a line break would be two, and all of them too long.
    return len(lines) == len(texts) * _LINE_LENGTH and _are_lines(lines) is not None
