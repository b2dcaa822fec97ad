"""The time range of a page: one of a few lengths up to now, or a start and an end of one's own. All times are UTC."""

from typing import Final

from msgspec import Struct

from dashboard.http.errors import invalid
from schemas.times import from_ms, parse_iso

_HOUR: Final = 3_600_000
LENGTHS: Final = {
    "1h": (_HOUR, "Last hour"),
    "24h": (24 * _HOUR, "Last 24 hours"),
    "7d": (7 * 24 * _HOUR, "Last 7 days"),
    "14d": (14 * 24 * _HOUR, "Last 14 days"),
    "30d": (30 * 24 * _HOUR, "Last 30 days"),
    "90d": (90 * 24 * _HOUR, "Last 90 days"),
}
DEFAULT: Final = "14d"


class PageRange(Struct, frozen=True):
    """A range as the reader takes it, and as links carry it (`parameters`)."""

    name: str
    words: str
    start: int
    end: int | None
    parameters: dict[str, str]

    @property
    def text(self) -> str:
        """The range as a saved view keeps it: the name of a length, or `START/END`."""
        return self.name or f"{self.parameters.get('start', '')}/{self.parameters.get('end', '')}"

    @property
    def start_field(self) -> str:
        """The start as an input of type datetime-local shows it."""
        return _field(self.start)

    @property
    def end_field(self) -> str:
        """The end, empty where it is now."""
        return "" if self.end is None else _field(self.end)


def read_span(fields: "dict[str, str]", now_ms: int) -> PageRange:
    """The range that a page's address names. Raises Refused for a time that is none."""
    start, end, name = (fields.get(key, "") for key in ("start", "end", "range"))
    if name in LENGTHS or not (start or end):
        name = name if name in LENGTHS else DEFAULT
        length, words = LENGTHS[name]
        return PageRange(name, words, now_ms - length, None, {} if name == DEFAULT else {"range": name})
    until = _moment("end", end) if end else None
    since = _moment("start", start) if start else (until or now_ms) - LENGTHS[DEFAULT][0]
    if until is not None and since >= until:
        raise invalid("start", "must be before the end")
    given = {key: value for key, value in (("start", start), ("end", end)) if value}
    words = f"{_words(since)} to {_words(until) if until is not None else 'now'}"
    return PageRange("", words, since, until, given)


def span_fields(text: str) -> dict[str, str]:
    """The fields of an address for a range as `PageRange.text` writes it. Raises Refused for another text."""
    start, slash, end = text.partition("/")
    if text in LENGTHS:
        return {} if text == DEFAULT else {"range": text}
    if not slash or not (start or end):
        raise invalid(
            "range", f"one of {', '.join(LENGTHS)}, or two times such as 2026-01-31T12:00/2026-02-01T12:00"
        )
    return {name: time for name, time in (("start", start), ("end", end)) if time}


def _moment(field: str, text: str) -> int:
    try:
        found = parse_iso(text if text.endswith("Z") or "+" in text else f"{text}Z")
    except ValueError:
        raise invalid(field, "must be a time such as 2026-01-31T12:00") from None
    if not 0 <= found < 4_102_444_800_000:
        raise invalid(field, "must lie between the years 1970 and 2099")
    return found


def _field(ms: int) -> str:
    return from_ms(ms).strftime("%Y-%m-%dT%H:%M")


def _words(ms: int) -> str:
    return from_ms(ms).strftime("%Y-%m-%d %H:%M")
