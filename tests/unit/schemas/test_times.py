"""The two clocks."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import times

DAY = 86_400_000
moments = st.datetimes(
    min_value=datetime(1970, 1, 1),  # noqa: DTZ001
    max_value=datetime(2200, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)


@given(moments)
def test_milliseconds_and_moments_agree(moment: datetime) -> None:
    cut = moment - timedelta(microseconds=moment.microsecond % 1000)
    assert times.from_ms(times.to_ms(moment)) == cut


@given(moments)
def test_iso_text_is_read_back(moment: datetime) -> None:
    ms = times.to_ms(moment)
    text = times.iso(ms)
    assert text.endswith("Z")
    assert len(text) == len("2026-01-01T00:00:00.000Z")
    assert times.parse_iso(text) == ms


def test_an_offset_is_honoured() -> None:
    moment = datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    assert times.parse_iso(moment.isoformat()) == times.to_ms(datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize("text", ["", "now", "2026-01-01T00:00:00", "2026-13-01T00:00:00Z"])
def test_a_text_without_an_offset_or_sense_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        times.parse_iso(text)


@pytest.mark.parametrize(
    ("distance", "trusted"),
    [(0, True), (-30 * DAY, True), (-30 * DAY - 1, False), (300_000, True), (300_001, False)],
)
def test_a_device_clock_is_believed_within_30_days_back_and_5_minutes_ahead(
    distance: int, trusted: bool
) -> None:
    received = 1_800_000_000_000
    expected = received + distance if trusted else received
    assert times.event_time(received + distance, received) == expected
