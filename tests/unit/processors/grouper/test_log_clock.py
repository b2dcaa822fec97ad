"""The log's clock: days that the log confirms, whatever single timestamps say."""

from hypothesis import given
from hypothesis import strategies as st

from processors.grouper.log_clock import DAY_RECORDS, LogClock, advanced, started
from schemas.times import DAY_MS
from tests.unit.processors.made import START

DAY = START // DAY_MS
FAR = st.integers(3, 4000).map(lambda days: days * DAY_MS)


def read(stamps: list[int], apart: int = DAY_RECORDS) -> LogClock:
    """The clock after records with these timestamps, so many offsets apart."""
    clock = started(0, stamps[0])
    for number, stamp in enumerate(stamps):
        clock = advanced(clock, number * apart, stamp)
    return clock


def steady(days: int) -> list[int]:
    """Two records a day."""
    return [START + half * DAY_MS // 2 for half in range(2 * days)]


def test_days_with_enough_records_are_counted() -> None:
    assert read(steady(10)).day == DAY + (steady(10)[-1] - START // DAY_MS * DAY_MS) // DAY_MS


def test_a_day_takes_many_records() -> None:
    assert 1 <= read(steady(10), apart=DAY_RECORDS // 4).day - DAY <= 4


@given(FAR, st.booleans(), st.integers(1, 19))
def test_timestamps_that_come_back_leave_no_trace(far: int, ahead: bool, index: int) -> None:
    stamps = steady(10)
    jumped = [*stamps[:index], stamps[index] + (far if ahead else -far), *stamps[index:]]
    assert read(jumped).day == read(stamps).day


@given(FAR, st.booleans(), st.integers(1, 19))
def test_a_jump_that_lasts_counts_no_days(far: int, ahead: bool, index: int) -> None:
    stamps = steady(10)
    jumped = [*stamps[:index], *(stamp + (far if ahead else -far) for stamp in stamps[index:])]
    # A jump back by few days is caught up with, as if those days had no records.
    assert read(stamps).day - 4 <= read(jumped).day <= read(stamps).day


@given(st.lists(st.integers(-(1 << 60), 1 << 60), min_size=1, max_size=60), st.integers(1, DAY_RECORDS))
def test_no_timestamps_count_more_than_a_day_for_so_many_records(stamps: list[int], apart: int) -> None:
    assert read(stamps, apart).day - stamps[0] // DAY_MS <= (len(stamps) - 1) * apart // DAY_RECORDS


@given(st.integers(1, 400))
def test_bursts_far_apart_are_days_too_so_that_memory_stays_bounded(days: int) -> None:
    bursts = [START + number * (days + 1) * DAY_MS for number in range(20)]
    assert read(bursts).day - DAY >= 9
