import pytest

from schemas.read_api import Interval, Point
from schemas.times import DAY_MS, HOUR_MS, iso
from storage.errors import BadQuery
from storage.read.counts.count_calls import chosen_interval, filled
from storage.read.query.ranges import Range

NOW_MS = 1_790_003_723_456


@pytest.mark.parametrize(
    ("length", "interval"),
    [(HOUR_MS, "minute"), (DAY_MS, "hour"), (7 * DAY_MS, "hour"), (14 * DAY_MS, "day")],
)
def test_an_interval_suits_its_range(length: int, interval: str) -> None:
    assert chosen_interval(None, Range(NOW_MS - length, None), NOW_MS) == interval


@pytest.mark.parametrize(("interval", "days"), [("minute", 2), ("hour", 90), ("day", 2500)])
def test_too_many_points_are_refused(interval: Interval, days: int) -> None:
    with pytest.raises(BadQuery, match="interval"):
        chosen_interval(interval, Range(NOW_MS - days * DAY_MS, None), NOW_MS)


def test_intervals_without_events_are_there() -> None:
    start = NOW_MS // DAY_MS * DAY_MS
    series = filled([(start + DAY_MS, 3, 2)], Range(start + 5, start + 3 * DAY_MS), "day", NOW_MS)
    assert series.series == [
        Point(iso(start), 0, 0),
        Point(iso(start + DAY_MS), 3, 2),
        Point(iso(start + 2 * DAY_MS), 0, 0),
    ]


def test_a_series_without_an_end_goes_on_to_now_and_into_the_future() -> None:
    hour = NOW_MS // HOUR_MS * HOUR_MS
    span = Range(hour - HOUR_MS, None)
    assert len(filled([], span, "hour", NOW_MS).series) == 2
    assert len(filled([(hour + HOUR_MS, 1, 1)], span, "hour", NOW_MS).series) == 3
