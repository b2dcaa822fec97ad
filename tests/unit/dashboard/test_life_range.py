"""The range of an issue's chart follows how long the issue has lasted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.time_ranges import life_range
from schemas.times import DAY_MS, HOUR_MS, MINUTE_MS
from storage.read.counts.count_calls import MAX_POINTS
from storage.read.query.ranges import UNIT_MS

NOW = 20_000 * DAY_MS + 7 * HOUR_MS + 13 * MINUTE_MS


@pytest.mark.parametrize(
    ("first", "last", "interval", "is_open"),
    [
        (20 * MINUTE_MS, 0, "minute", True),
        (2 * HOUR_MS, MINUTE_MS, "minute", True),
        (5 * HOUR_MS, MINUTE_MS, "hour", True),
        (13 * DAY_MS, 10 * MINUTE_MS, "day", True),
        (300 * DAY_MS, DAY_MS, "day", True),
        # An incident of five hours, a month ago.
        (30 * DAY_MS, 30 * DAY_MS - 5 * HOUR_MS, "hour", False),
    ],
)
def test_an_incident_is_more_than_one_bar(first: int, last: int, interval: str, is_open: bool) -> None:
    found = life_range(NOW - first, NOW - last, NOW)
    assert (found.interval, found.end is None) == (interval, is_open)
    bars = ((found.end or NOW) - found.start) // UNIT_MS[found.interval]
    assert 5 <= bars <= 366


@given(st.integers(0, 2_000 * DAY_MS), st.integers(0, 2_000 * DAY_MS))
def test_the_range_has_the_life_or_its_last_year(one: int, other: int) -> None:
    first, last = NOW - max(one, other), NOW - min(one, other)
    found = life_range(first, last, NOW)
    end = NOW if found.end is None else found.end
    assert found.start % UNIT_MS[found.interval] == 0
    assert found.start <= max(first, end - 365 * DAY_MS)
    assert end > last or end == NOW
    assert found.start < end
    assert (end - found.start) // UNIT_MS[found.interval] <= MAX_POINTS
