"""Until when everything that arrived is stored, given what the two groups had done and when."""

from broker.pipeline_lag import Grouped, stored_until

LOOKS = [Grouped(at_ms=1_000, until_ms=400), Grouped(2_000, 500), Grouped(3_000, 2_900)]


def test_what_was_grouped_before_a_moment_had_arrived_long_before_if_the_processors_were_behind() -> None:
    assert stored_until(LOOKS, 2_999) == 500
    assert stored_until(LOOKS, 3_000) == 2_900
    assert stored_until(LOOKS, 9_000) == 2_900


def test_before_the_first_look_no_later_time_is_known_than_the_first_one_found() -> None:
    assert stored_until(LOOKS, 999) == 400
    assert stored_until(LOOKS, 100) == 100
    assert stored_until([], 100) == 100
