"""When quiet hours end. Pure."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from schemas.notifications import DAYS, QuietHours
from schemas.times import from_ms

_DAYS_AHEAD = 9
"""A span that is quiet without a break is shorter: one day of a week is not quiet."""


def after_quiet(ms: int, quiet: QuietHours | None) -> int:
    """The first time from `ms` on (Unix ms) that is not quiet. Raises ZoneInfoNotFoundError for an unknown zone."""
    if quiet is None:
        return ms
    zone = ZoneInfo(quiet.zone)
    now = from_ms(ms)
    yesterday = now.astimezone(zone).date() - timedelta(days=1)
    for start, end in sorted(_spans(quiet, yesterday, zone)):
        if start <= now < end:
            now = end
    return max(ms, round(now.timestamp() * 1000))


def _spans(quiet: QuietHours, first: date, zone: ZoneInfo) -> Iterator[tuple[datetime, datetime]]:
    """The spans that are quiet, each by itself, in UTC."""
    start, end = time.fromisoformat(quiet.start), time.fromisoformat(quiet.end)
    for number in range(_DAYS_AHEAD):
        day = first + timedelta(days=number)
        following = day + timedelta(days=1)
        yield _utc(day, start, zone), _utc(following if end < start else day, end, zone)
        if DAYS[day.weekday()] in quiet.days:
            yield _utc(day, time(), zone), _utc(following, time(), zone)


def _utc(day: date, clock: time, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, clock, zone).astimezone(UTC)
