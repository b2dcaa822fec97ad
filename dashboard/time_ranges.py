"""Time ranges of pages: a preset duration up to now, or a custom start and end. All times are UTC."""

from typing import Final

from msgspec import Struct

from dashboard.http.http_errors import invalid
from dashboard.http.inputs import Bounds, check_year
from schemas.read_api import Interval
from schemas.times import DAY_MS, HOUR_MS, from_ms, parse_iso
from storage.read.query.ranges import UNIT_MS, Range, trend_unit

DURATIONS: Final = {
    "1h": (HOUR_MS, "Last hour"),
    "24h": (DAY_MS, "Last 24 hours"),
    "7d": (7 * DAY_MS, "Last 7 days"),
    "14d": (14 * DAY_MS, "Last 14 days"),
    "30d": (30 * DAY_MS, "Last 30 days"),
    "90d": (90 * DAY_MS, "Last 90 days"),
}
DEFAULT: Final = "14d"
_INTERVALS: Final[tuple[tuple[Interval, int], ...]] = (("minute", 3 * HOUR_MS), ("hour", 5 * DAY_MS))
"""The longest ranges of charts by minutes, and by hours."""
_MIN_BARS: Final = 14
_MAX_LIFE_MS: Final = 365 * DAY_MS


class LifeRange(Struct, frozen=True):
    """The part of time in which an issue happened, in Unix milliseconds, and the interval of its chart."""

    start: int
    end: int | None
    interval: Interval


class PageRange(Struct, frozen=True):
    """A range in Unix milliseconds, and as the parameters of links; `name` is empty for a custom range."""

    name: str
    label: str
    start: int
    end: int | None
    parameters: dict[str, str]

    @property
    def bounds(self) -> Bounds:
        """The range as arguments of a read call."""
        return {"start": self.start, "end": self.end}

    def is_short(self, now_ms: int) -> bool:
        """Whether the trends of the list are by hours: they have 24 of these, or 14 days, for any range."""
        return trend_unit(Range(self.start, self.end), now_ms) == "hour"

    @property
    def text(self) -> str:
        """The range as a saved view stores it: the name of a duration, or `START/END`."""
        return self.name or f"{self.parameters.get('start', '')}/{self.parameters.get('end', '')}"

    @property
    def start_field(self) -> str:
        """The start as the value of a datetime-local input."""
        return _field(self.start)

    @property
    def end_field(self) -> str:
        """The end as such a value; empty if it is now."""
        return "" if self.end is None else _field(self.end)


def life_range(first: int, last: int, now_ms: int) -> LifeRange:
    """The range of an issue's chart: minutes for an issue of an hour, days for one of months.

    It ends now, or soon after the last event where that is long ago compared with how long the issue lasted.
    """
    life = max(last - first, HOUR_MS)
    is_over = now_ms - last > life
    end = last + life // 4 if is_over else now_ms
    interval: Interval = next((name for name, most in _INTERVALS if end - first <= most), "day")
    unit = UNIT_MS[interval]
    start = max(min(first, end - _MIN_BARS * unit), end - _MAX_LIFE_MS)
    return LifeRange(start // unit * unit, end if is_over else None, interval)


def read_page_range(fields: dict[str, str], now_ms: int) -> PageRange:
    """The range of a page's query parameters. Raises HttpError for an invalid time."""
    start, end, name = (fields.get(key, "") for key in ("start", "end", "range"))
    if name in DURATIONS or not (start or end):
        name = name if name in DURATIONS else DEFAULT
        duration, label = DURATIONS[name]
        return PageRange(name, label, now_ms - duration, None, {} if name == DEFAULT else {"range": name})
    until = _read("end", end) if end else None
    since = _read("start", start) if start else (until or now_ms) - DURATIONS[DEFAULT][0]
    if until is not None and since >= until:
        raise invalid("start", "must be before the end")
    parameters = {key: value for key, value in (("start", start), ("end", end)) if value}
    label = f"{_label(since)} to {_label(until) if until is not None else 'now'}"
    return PageRange("", label, since, until, parameters)


def range_parameters(text: str) -> dict[str, str]:
    """The query parameters for a range as `PageRange.text` writes it. Raises HttpError for any other text."""
    start, slash, end = text.partition("/")
    if text in DURATIONS:
        return {} if text == DEFAULT else {"range": text}
    if not slash or not (start or end):
        raise invalid(
            "range", f"one of {', '.join(DURATIONS)}, or two times such as 2026-01-31T12:00/2026-02-01T12:00"
        )
    return {name: time for name, time in (("start", start), ("end", end)) if time}


def _read(field: str, text: str) -> int:
    try:
        ms = parse_iso(text if text.endswith("Z") or "+" in text else f"{text}Z")
    except ValueError:
        raise invalid(field, "must be a time such as 2026-01-31T12:00") from None
    return check_year(field, ms)


def _field(ms: int) -> str:
    return from_ms(ms).strftime("%Y-%m-%dT%H:%M")


def _label(ms: int) -> str:
    return from_ms(ms).strftime("%Y-%m-%d %H:%M")
