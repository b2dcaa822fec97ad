"""Checks the format of timestamps (contract, section 2, point 6). Pure.

msgspec accepts more: a blank or `t` for `T`, `z`, `+0000`, `-00:00`. So timestamps are decoded as strings and checked here,
many at once if each has milliseconds and `Z`, as the protocol requires.
"""

import re
from collections.abc import Sequence
from datetime import date, datetime
from functools import lru_cache
from typing import Final

import msgspec

from schemas.event import TIME_PATTERN, Breadcrumb

_DATE: Final = len("2026-01-31")
_LINE: Final = len("2026-01-31T12:00:00.000Z\n")
_DIGITS_AS_0: Final = bytes.maketrans(b"123456789", b"0" * 9)
_TO_VALUES: Final = bytes.maketrans(b"0123456789", bytes(range(10)))
_PATTERN: Final = b"0000-00-00T00:00:00.000Z\n"
_RANGES: Final = (
    (5, bytes(range(1, 13))),
    (11, bytes(range(24))),
    (14, bytes(range(60))),
    (17, bytes(range(60))),
)
"""Offsets and valid values of month, hour, minute and second."""
_DAY: Final = 8
_DAYS: Final = bytes(range(1, 29))
"""Days that every month has."""
_search: Final = re.compile(TIME_PATTERN).search


def of_event(timestamp: str, breadcrumbs: Sequence[Breadcrumb] | None) -> list[str]:
    """The timestamps of an event."""
    return [timestamp, *[crumb.timestamp for crumb in breadcrumbs]] if breadcrumbs else [timestamp]


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
    """Whether each text is a valid time from the year 1000 on, with milliseconds and `Z`."""
    count = len(texts)
    # If the line breaks are where they should be, no text contains one, and each has the length of the pattern.
    lines = "\n".join(texts).encode("ascii", "replace") + b"\n"
    if lines.translate(_DIGITS_AS_0) != _PATTERN * count or b"0" in lines[::_LINE]:
        return False
    values = lines.translate(_TO_VALUES)
    return all(not _numbers(values, offset, count).strip(valid) for offset, valid in _RANGES) and (
        not _numbers(values, _DAY, count).strip(_DAYS) or all(map(_is_date, {text[:_DATE] for text in texts}))
    )


def _numbers(values: bytes, offset: int, count: int) -> bytes:
    """The two-digit number at an offset of every line, as one byte per line: no sum carries into the next byte."""
    tens, units = values[offset::_LINE], values[offset + 1 :: _LINE]
    return (int.from_bytes(tens, "big") * 10 + int.from_bytes(units, "big")).to_bytes(count, "big")


@lru_cache(maxsize=1000)
def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
