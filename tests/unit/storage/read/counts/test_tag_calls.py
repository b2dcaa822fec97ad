from schemas.times import DAY_MS
from storage.read.counts.tag_calls import SAMPLE, sampled_range
from storage.read.query.ranges import Range

DAYS = [(9 * DAY_MS, SAMPLE // 2), (8 * DAY_MS, SAMPLE // 2), (7 * DAY_MS, SAMPLE)]


def test_a_sample_is_of_the_newest_days_that_have_enough_events() -> None:
    assert sampled_range(DAYS, Range(0, None)) == Range(8 * DAY_MS, None)


def test_a_sample_never_begins_before_the_range() -> None:
    span = Range(8 * DAY_MS + 5, None)
    assert sampled_range(DAYS, span) == span


def test_a_sample_that_the_days_do_not_fill_is_of_the_whole_range() -> None:
    assert sampled_range(DAYS[:1], Range(3, None)) == Range(3, None)
