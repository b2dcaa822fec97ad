"""Values of comparisons: counts, times, and times before now."""

import re
from typing import Final

from query.tree import Compare
from schemas.times import DAY_MS, HOUR_MS, MINUTE_MS, iso, parse_iso

UNITS: Final = {"w": 7 * DAY_MS, "d": DAY_MS, "h": HOUR_MS, "m": MINUTE_MS, "s": 1000}
"""Milliseconds of each unit of a time before now."""

EARLIEST: Final = 0
LATEST: Final = 7_258_118_400_000
"""The start of 2200 (Unix ms), well within the range of time columns."""
MAX_COUNT: Final = (1 << 63) - 1

_AGO = re.compile(r"-([0-9]{1,9})([wdhms])")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_OFFSET = re.compile(r"(?:Z|[+-][0-9]{2}:[0-9]{2})\Z")


def read_count(text: str) -> int | None:
    """The count of a text, or None if it is no count."""
    if not text.isascii() or not text.isdigit() or len(text) > 19:
        return None
    number = int(text)
    return number if number <= MAX_COUNT else None


def read_time(text: str) -> tuple[int, bool] | None:
    """Unix ms and False, or ms before now and True; None for other texts. A time without an offset is UTC."""
    if found := _AGO.fullmatch(text):
        before = int(found[1]) * UNITS[found[2]]
        return (before, True) if before <= LATEST else None
    if not _DATE.match(text):
        return None
    moment = text + "T00:00" if _DATE.fullmatch(text) else text
    try:
        ms = parse_iso(moment if _OFFSET.search(moment) else moment + "Z")
    except (ValueError, OverflowError):
        return None
    return (ms, False) if EARLIEST <= ms < LATEST else None


def write_value(compare: Compare) -> str:
    """The text of a value for `read_count` or `read_time`."""
    if compare.ago:
        unit, size = next((unit, size) for unit, size in UNITS.items() if compare.value % size == 0)
        return f"-{compare.value // size}{unit}"
    return str(compare.value) if compare.key in {"events", "users"} else iso(compare.value)


def moment_ms(compare: Compare, now_ms: int) -> int:
    """The value to compare with: a count, or Unix ms, never before 1970."""
    return max(EARLIEST, now_ms - compare.value) if compare.ago else compare.value
