"""Ranges of time, and how a range is put together from whole days, whole hours and what is left at its ends."""

from typing import Final

from msgspec import Struct

from query.values import EARLIEST, LATEST
from storage.errors import BadQuery

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
DEFAULT_DAYS: Final = 14


class Range(Struct, frozen=True):
    """From `start` (included) to `end` (not), Unix ms. Without an end it takes in what devices date a little ahead, too."""

    start: int
    end: int | None

    def length(self, now_ms: int) -> int:
        """Milliseconds up to the end, or to now."""
        return (now_ms if self.end is None else self.end) - self.start

    def around(self, other: "Range") -> "Range":
        """The shortest range that holds both."""
        end = None if self.end is None or other.end is None else max(self.end, other.end)
        return Range(min(self.start, other.start), end)


class Cut(Struct, frozen=True):
    """A range in pieces `(start, end)`: whole days, whole hours beside them, and edges within an hour."""

    days: tuple[Range, ...]
    hours: tuple[Range, ...]
    edges: tuple[Range, ...]


def resolve_range(start: int | None, end: int | None, now_ms: int) -> Range:
    """The range of a call: by default from the full hour 14 days ago. Raises BadQuery where it is empty or out of this world."""
    for name, value in (("start", start), ("end", end)):
        if value is not None and not EARLIEST <= value < LATEST:
            raise BadQuery(name, "a time between 1970 and 2199")
    if start is None:
        start = max(EARLIEST, floor(now_ms if end is None else end, HOUR_MS) - DEFAULT_DAYS * DAY_MS)
    if end is not None and end <= start:
        raise BadQuery("end", "a time after start")
    return Range(start, end)


def floor(ms: int, unit: int) -> int:
    """The last whole unit up to the moment."""
    return ms - ms % unit


def ceil(ms: int, unit: int) -> int:
    """The first whole unit from the moment on."""
    return -(-ms // unit) * unit


def cut(span: Range, smallest: int = HOUR_MS) -> Cut:
    """The pieces of a range. With `smallest` a day there are no hours: what is beside the days is edges."""
    inner, edges = whole(span, smallest)
    if inner is None or smallest == DAY_MS:
        return Cut((inner,) if inner else (), (), edges)
    days, hours = whole(inner, DAY_MS)
    return Cut((days,) if days else (), hours, edges)


def whole(span: Range, unit: int) -> tuple[Range | None, tuple[Range, ...]]:
    """The whole units of a range, and what is beside them."""
    start = ceil(span.start, unit)
    end = None if span.end is None else floor(span.end, unit)
    if end is not None and end <= start:
        whole = span.start == start and span.end == end
        return None, () if whole else (span,)
    edges = []
    if span.start < start:
        edges.append(Range(span.start, start))
    if end is not None and span.end is not None and end < span.end:
        edges.append(Range(end, span.end))
    return Range(start, end), tuple(edges)
