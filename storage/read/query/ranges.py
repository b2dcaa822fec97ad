"""Time ranges: their whole days, whole hours and edges, and the trend of an issue (24 hours or 14 days)."""

from typing import Final

from msgspec import Struct

from query.values import EARLIEST, LATEST
from schemas.read_api import Interval
from schemas.times import DAY_MS, HOUR_MS, MINUTE_MS
from storage.errors import BadQuery

UNIT_MS: Final[dict[Interval, int]] = {"minute": MINUTE_MS, "hour": HOUR_MS, "day": DAY_MS}
_DEFAULT_DAYS: Final = 14
_TREND_UNITS: Final[dict[Interval, int]] = {"hour": 24, "day": 14}


class Range(Struct, frozen=True):
    """From `start` (inclusive) to `end` (exclusive), Unix ms.

    Without an end it includes events dated slightly ahead of now.
    """

    start: int
    end: int | None

    def length(self, now_ms: int) -> int:
        """Milliseconds up to the end, or to now."""
        return (now_ms if self.end is None else self.end) - self.start

    def around(self, other: "Range") -> "Range":
        """The shortest range that contains both."""
        end = None if self.end is None or other.end is None else max(self.end, other.end)
        return Range(min(self.start, other.start), end)


class Cut(Struct, frozen=True):
    """A range as whole days, whole hours around them, and edges shorter than an hour."""

    days: tuple[Range, ...]
    hours: tuple[Range, ...]
    edges: tuple[Range, ...]


def resolve_range(start: int | None, end: int | None, now_ms: int) -> Range:
    """The range of a call, by default from the full hour 14 days ago.

    Raises BadQuery if it is empty or out of bounds.
    """
    for name, value in (("start", start), ("end", end)):
        if value is not None and not EARLIEST <= value < LATEST:
            raise BadQuery(name, "a time between 1970 and 2199")
    if start is None:
        start = max(EARLIEST, floor(now_ms if end is None else end, HOUR_MS) - _DEFAULT_DAYS * DAY_MS)
    if end is not None and end <= start:
        raise BadQuery("end", "a time after start")
    return Range(start, end)


def floor(ms: int, unit: int) -> int:
    """The start of the unit that contains a time."""
    return ms - ms % unit


def ceil(ms: int, unit: int) -> int:
    """The first start of a unit at or after a time."""
    return -(-ms // unit) * unit


def cut(span: Range, smallest: int = HOUR_MS) -> Cut:
    """The pieces of a range.

    If `smallest` is a day there are no hours, and the edges may be as long as a day.
    """
    inner, edges = whole(span, smallest)
    if inner is None or smallest == DAY_MS:
        return Cut((inner,) if inner else (), (), edges)
    days, hours = whole(inner, DAY_MS)
    return Cut((days,) if days else (), hours, edges)


def whole(span: Range, unit: int) -> tuple[Range | None, tuple[Range, ...]]:
    """The whole units of a range, and the remaining edges."""
    start = ceil(span.start, unit)
    end = None if span.end is None else floor(span.end, unit)
    if end is not None and end <= start:
        empty = span.start == start and span.end == end
        return None, () if empty else (span,)
    edges = []
    if span.start < start:
        edges.append(Range(span.start, start))
    if end is not None and span.end is not None and end < span.end:
        edges.append(Range(end, span.end))
    return Range(start, end), tuple(edges)


def trend_unit(span: Range, now_ms: int) -> Interval:
    """The unit of the trend: hours for ranges up to a day, else days."""
    return "hour" if span.length(now_ms) <= DAY_MS + HOUR_MS else "day"


def trend_window(span: Range, now_ms: int) -> Range:
    """The units that the trend covers; the last one contains the end of the range."""
    unit = trend_unit(span, now_ms)
    size = UNIT_MS[unit]
    last = floor(now_ms if span.end is None else span.end - 1, size)
    return Range(max(0, last - (_TREND_UNITS[unit] - 1) * size), last + size)


def trend_counts(counts: dict[int, int], span: Range, now_ms: int) -> list[int]:
    """The trend as a list without gaps, from counts keyed by the start of their unit (Unix ms)."""
    window, size = trend_window(span, now_ms), UNIT_MS[trend_unit(span, now_ms)]
    assert window.end is not None
    return [counts.get(start, 0) for start in range(window.start, window.end, size)]
