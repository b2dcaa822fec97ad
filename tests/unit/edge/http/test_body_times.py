"""How long a body may take: a while as slowly as it likes, then at a least rate, and never longer than the most."""

import pytest

from edge.http.body import BodyTimes

TIMES = BodyTimes(seconds=30.0, grace_seconds=5.0, min_rate=1000)


@pytest.mark.parametrize(("size", "seconds"), [(0, 5.0), (1000, 6.0), (10_000, 15.0), (1_000_000, 30.0)])
def test_each_second_after_the_grace_is_paid_for_by_bytes(size: int, seconds: float) -> None:
    assert TIMES.allowed(size) == seconds
