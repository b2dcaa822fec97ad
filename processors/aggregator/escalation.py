"""When an issue escalates: in one hour it has far more events than its own past lets expect. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

LEAST: Final = 20
"""Events in an hour below which nothing escalates, however rare the issue was."""
FACTOR: Final = 4
"""An hour escalates from this many times the expected events."""
_DAY: Final = 24
_WEEK: Final = 7 * _DAY
_DAYS: Final = 13
"""Days before the present one whose hours a record surely has."""

Hours = Sequence[Mapping[int, int]]
"""Events by Unix hour, of each fingerprint of an issue."""


def escalates(hours: Hours, hour: int, since: int) -> bool:
    """Whether the events so far in this hour are too many, and not below `LEAST`.

    `since` is the hour of the issue's first event. An issue in its first hour is new and can't escalate.
    """
    return since < hour and _count(hours, hour) >= max(LEAST, FACTOR * expected(hours, hour, since))


def expected(hours: Hours, hour: int, since: int) -> float:
    """The events that the past lets expect in an hour: the greatest of three figures.

    A figure counts only if the issue is old enough for it:

    1. the mean of the last 24 hours;
    2. the mean of this hour of the day on the last 13 days;
    3. this hour of this weekday a week before.

    For the second and third, the hours before and after count too if they had more: a nightly job doesn't
    begin on the minute.
    """
    lived = hour - since
    recent = [_count(hours, hour - back) for back in range(1, 1 + min(_DAY, lived))]
    days = [_around(hours, hour - _DAY * back) for back in range(1, 1 + min(_DAYS, lived // _DAY))]
    week_before = _around(hours, hour - _WEEK) if lived >= _WEEK else 0
    return max(_mean(recent), _mean(days), week_before)


def worth_judging(before: int, now: int) -> bool:
    """Whether a count has grown by a step: by a seventh to a quarter.

    Judging a busy issue at every increment would cost too much.
    """
    # A step is a change of one of the three highest bits.
    return now >= LEAST and (before < LEAST or (now ^ before) >> (now.bit_length() - 3) != 0)


def _around(hours: Hours, hour: int) -> int:
    return max(_count(hours, near) for near in (hour - 1, hour, hour + 1))


def _count(hours: Hours, hour: int) -> int:
    return sum(one.get(hour, 0) for one in hours)


def _mean(counts: Sequence[int]) -> float:
    return sum(counts) / len(counts) if counts else 0.0
