"""The small series beside an issue: 24 hours or 14 days up to the end of a range."""

from storage.reader.counts import UNIT_MS, Unit
from storage.reader.ranges import DAY_MS, HOUR_MS, Range, floor

_HOURS = 24
_DAYS = 14


def trend_unit(span: Range, now_ms: int) -> Unit:
    """Hours for a day, days for more."""
    return "hour" if span.length(now_ms) <= DAY_MS + HOUR_MS else "day"


def trend_window(span: Range, now_ms: int) -> Range:
    """The units that the trend shows: the last one holds the range's end."""
    unit = trend_unit(span, now_ms)
    size, many = UNIT_MS[unit], _HOURS if unit == "hour" else _DAYS
    last = floor(now_ms if span.end is None else span.end - 1, size)
    return Range(max(0, last - (many - 1) * size), last + size)


def trend_counts(counts: dict[int, int], span: Range, now_ms: int) -> list[int]:
    """Counts by the Unix ms of their unit as a list, without gaps."""
    window, size = trend_window(span, now_ms), UNIT_MS[trend_unit(span, now_ms)]
    assert window.end is not None
    return [counts.get(start, 0) for start in range(window.start, window.end, size)]
