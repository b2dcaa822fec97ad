import pytest

from schemas.times import DAY_MS, HOUR_MS
from storage.read.query.ranges import Range, trend_counts, trend_unit, trend_window

NOW_MS = 1_790_003_723_456
HOUR = NOW_MS // HOUR_MS * HOUR_MS
DAY = NOW_MS // DAY_MS * DAY_MS


@pytest.mark.parametrize(
    ("span", "unit", "window"),
    [
        (Range(NOW_MS - 14 * DAY_MS, None), "day", Range(DAY - 13 * DAY_MS, DAY + DAY_MS)),
        (Range(NOW_MS - DAY_MS, None), "hour", Range(HOUR - 23 * HOUR_MS, HOUR + HOUR_MS)),
        (Range(DAY - 3 * DAY_MS, DAY), "day", Range(DAY - 14 * DAY_MS, DAY)),
        (Range(HOUR - HOUR_MS, HOUR), "hour", Range(HOUR - 24 * HOUR_MS, HOUR)),
    ],
)
def test_the_last_unit_of_a_trend_holds_the_end_of_the_range(span: Range, unit: str, window: Range) -> None:
    assert trend_unit(span, NOW_MS) == unit
    assert trend_window(span, NOW_MS) == window


def test_a_trend_has_no_gaps() -> None:
    counts = trend_counts({DAY: 3, DAY - 2 * DAY_MS: 1}, Range(NOW_MS - 14 * DAY_MS, None), NOW_MS)
    assert counts == [0] * 11 + [1, 0, 3]
