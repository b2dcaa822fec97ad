import pytest

from processors.partition_stage import DeadLetterLimit, TooManyBad


def test_now_and_then_a_bad_record_is_no_reason_to_stop() -> None:
    limit = DeadLetterLimit(window=20, limit=10)
    for _ in range(100):
        limit.add_batch(good=3, bad=1)


def test_when_most_recent_records_are_bad_processing_stops() -> None:
    limit = DeadLetterLimit(window=20, limit=10)
    limit.add_batch(good=100, bad=9)
    with pytest.raises(TooManyBad, match="10 of the last 20"):
        limit.add_batch(good=0, bad=1)
