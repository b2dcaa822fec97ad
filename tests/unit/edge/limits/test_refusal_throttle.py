"""Throttled refusals: the first ones are immediate, a flood gets so many a second, by token."""

from edge.limits.refusal_throttle import RefusalThrottle


def test_first_refusals_are_immediate_and_later_ones_delayed() -> None:
    now = [100.0]
    throttle = RefusalThrottle(lambda: now[0])
    assert [throttle.wait_seconds("a") for _ in range(199)] == [0.0] * 199
    waits = [throttle.wait_seconds("a") for _ in range(100)]
    assert waits == sorted(waits)
    assert 0.9 < waits[-1] < 1.1
    assert throttle.wait_seconds("b") == 0.0
    now[0] += 10
    assert throttle.wait_seconds("a") == 0.0


def test_the_longest_wait_is_bounded_and_the_flood_leaves_nothing_behind_it() -> None:
    now = [0.0]
    throttle = RefusalThrottle(lambda: now[0])
    waits = [throttle.wait_seconds("") for _ in range(100_000)]
    assert max(waits) <= 3.0
    now[0] += 6
    assert throttle.wait_seconds("") == 0.0


def test_tokens_that_are_refused_no_more_are_forgotten() -> None:
    now = [0.0]
    throttle = RefusalThrottle(lambda: now[0])
    for number in range(5000):
        now[0] += 1
        throttle.wait_seconds(f"{number}")
    assert len(throttle._next_at) <= 1000
