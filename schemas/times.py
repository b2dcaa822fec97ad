"""Times: conversions, and the event's time from the device's clock and the time of receipt."""

from datetime import UTC, datetime, timedelta
from typing import Final

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
OLDEST: Final = timedelta(days=30)
NEWEST: Final = timedelta(minutes=5)
_OLDEST_MS: Final = int(OLDEST.total_seconds() * 1000)
_NEWEST_MS: Final = int(NEWEST.total_seconds() * 1000)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def to_ms(moment: datetime) -> int:
    """Unix time in whole milliseconds, truncated; exact, in contrast to floats."""
    delta = moment - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1000 + delta.microseconds // 1000


def from_ms(ms: int) -> datetime:
    """The moment of a Unix time in milliseconds."""
    return _EPOCH + timedelta(milliseconds=ms)


def iso(ms: int) -> str:
    """ISO 8601 in UTC with milliseconds and `Z`, as in all responses and records."""
    return from_ms(ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_iso(text: str) -> int:
    """Unix milliseconds of an ISO 8601 time with an offset. Raises ValueError for any other text."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("a time needs an offset, such as Z")
    return to_ms(moment)


def event_time(timestamp_ms: int, received_ms: int) -> int:
    """The event's time for ranges and series (contract, section 2, point 10); implausible device clocks are ignored."""
    if received_ms - _OLDEST_MS <= timestamp_ms <= received_ms + _NEWEST_MS:
        return timestamp_ms
    return received_ms
