"""Whether texts are times of the contract (section 2, point 6). Pure.

msgspec reads more than that: a blank or `t` in place of `T`, `z`, `+0000`, `-00:00`. So times are decoded as texts and their
form is looked at here, that of many at once where each has milliseconds and `Z`, as the protocol asks.
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
_AS_VALUES: Final = bytes.maketrans(b"0123456789", bytes(range(10)))
_FORM: Final = b"0000-00-00T00:00:00.000Z\n"
_RANGES: Final = (
    (5, bytes(range(1, 13))),
    (11, bytes(range(24))),
    (14, bytes(range(60))),
    (17, bytes(range(60))),
)
"""Where the month, the hour, the minute and the second stand, and what they may be."""
_DAY: Final = 8
_DAYS: Final = bytes(range(1, 29))
"""Those that every month has."""
_search: Final = re.compile(TIME_PATTERN).search


def of_event(timestamp: str, breadcrumbs: Sequence[Breadcrumb] | None) -> list[str]:
    """The times that stand in an event."""
    return [timestamp, *[crumb.timestamp for crumb in breadcrumbs]] if breadcrumbs else [timestamp]


def are_utc(texts: Sequence[str]) -> bool:
    """Whether `is_utc` holds for each."""
    return _are_usual(texts) or all(map(is_utc, texts))


def is_utc(text: str) -> bool:
    """Whether a text is ISO 8601 in UTC and a moment that every decoder knows: no day 30 of February, no second 60."""
    if not _search(text):
        return False
    try:
        msgspec.convert(text, datetime)
    except msgspec.ValidationError:
        return False
    return True


def _are_usual(texts: Sequence[str]) -> bool:
    """Whether each has milliseconds and `Z`, and is a moment of a year from 1000 on."""
    count = len(texts)
    # With as many line breaks between them as there should be, no text has one, and each is as long as the form.
    lines = "\n".join(texts).encode("ascii", "replace") + b"\n"
    if lines.translate(_DIGITS_AS_0) != _FORM * count or b"0" in lines[::_LINE]:
        return False
    values = lines.translate(_AS_VALUES)
    return all(not _numbers(values, place, count).strip(known) for place, known in _RANGES) and (
        not _numbers(values, _DAY, count).strip(_DAYS) or all(map(_is_date, {text[:_DATE] for text in texts}))
    )


def _numbers(values: bytes, place: int, count: int) -> bytes:
    """The number of two digits that stands at one place of every line, each as a byte: no sum carries into the next."""
    tens, units = values[place::_LINE], values[place + 1 :: _LINE]
    return (int.from_bytes(tens, "big") * 10 + int.from_bytes(units, "big")).to_bytes(count, "big")


@lru_cache(maxsize=1000)
def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
