"""The day of a partition of `events`, counted from record timestamps that the log itself confirms.

A broker's clock can jump, and a jump must not empty the index of ids. So `LogClock` does not follow the
greatest timestamp: it counts one day at a time, and a day takes at least `DAY_RECORDS` records. A timestamp
that is more than a day away from the clock's is doubted until a later day follows on it; a record of the
clock's own days ends the doubt. A day without records is not counted.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from schemas.times import DAY_MS

DAY_RECORDS: Final = 1_000
"""Fewest records of a day: whatever their timestamps say, ids outlive as many records for each day of the window."""


class LogClock(Struct, array_like=True, frozen=True):
    """The day of the log after the records up to one offset.

    `day` counts days of the log. `stamped` is the day of the timestamps with which it began, `since` the
    offset at which it did. `doubted` is the day of timestamps that nothing has confirmed.
    """

    day: int
    stamped: int
    since: int
    doubted: int | None = None


def started(offset: int, timestamp_ms: int) -> LogClock:
    """The clock at the first record of a log."""
    day = timestamp_ms // DAY_MS
    return LogClock(day, day, offset)


def advanced(clock: LogClock, offset: int, timestamp_ms: int) -> LogClock:
    """The clock after one more record."""
    stamped = timestamp_ms // DAY_MS
    if abs(stamped - clock.stamped) > 1:
        if clock.doubted is None or stamped < clock.doubted:
            return replace(clock, doubted=stamped)
        later = stamped > clock.doubted
    else:
        if clock.doubted is not None:
            clock = replace(clock, doubted=None)
        later = stamped > clock.stamped
    if later and offset - clock.since >= DAY_RECORDS:
        return LogClock(clock.day + 1, stamped, offset)
    return clock
