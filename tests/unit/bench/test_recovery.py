"""The recovery times of `python -m bench.recovery`."""

from uuid import UUID

from bench.recovery import WATCHED_SECONDS, delays

A, B, C, D = (UUID(int=number) for number in range(4))


def test_an_event_waits_from_its_answer_or_from_the_end_of_the_fault() -> None:
    accepted = {A: 90.0, B: 105.0, C: 112.0}
    queryable = {A: 113.0, B: 110.5, C: 114.0}
    assert delays(accepted, queryable, 100.0, 110.0) == [0.5, 2.0, 3.0]


def test_events_of_other_times_are_left_out() -> None:
    accepted = {A: 90.0, B: 105.0, C: 111.0 + WATCHED_SECONDS, D: 104.0}
    queryable = {A: 99.0, B: 109.0, D: 111.0}
    assert delays(accepted, queryable, 100.0, 110.0) == [0.0, 1.0]
