"""The rule of an escalation on series of hourly counts that escalate and that don't."""

import random
from collections.abc import Iterable
from itertools import pairwise

import pytest

from processors.aggregator.escalation import LEAST, escalates, worth_judging
from schemas.issues import ESCALATING_MS
from schemas.times import HOUR_MS
from tests.long_forms import first_quick
from tests.unit.hourly_series import ORDINARY

WEEKS = 6
HOURS = WEEKS * 7 * 24


def escalations(counts: Iterable[int]) -> list[int]:
    """The hours that escalate, each judged at its end, as an issue's record knows its past: 14 days of it."""
    known: dict[int, int] = {}
    found: list[int] = []
    for hour, count in enumerate(counts):
        known[hour] = count
        known.pop(hour - 14 * 24, None)
        calm = not found or hour - found[-1] >= ESCALATING_MS // HOUR_MS
        if calm and escalates([known], hour, 0):
            found.append(hour)
    return found


FIRST_WEEKS = 14 * 24
"""Until then a series is new: its second day, its first weekend and its first weekly job may surprise."""


@pytest.mark.parametrize("name", ORDINARY)
@pytest.mark.parametrize("seeds", first_quick([range(5), range(20)]))
def test_an_ordinary_series_escalates_hardly_ever(name: str, seeds: range) -> None:
    found = [
        hour
        for seed in seeds
        for hour in escalations(ORDINARY[name](random.Random(seed * 1000 + h), h) for h in range(HOURS))
        if hour >= FIRST_WEEKS
    ]
    assert len(found) <= 2, found


@pytest.mark.parametrize("name", ORDINARY)
@pytest.mark.parametrize("factor", first_quick([8, 50]))
def test_an_incident_is_found_in_its_first_hour_and_once(name: str, factor: int) -> None:
    start, length = FIRST_WEEKS + 5 * 24 + 11, 30
    for seed in range(10):
        counts = [ORDINARY[name](random.Random(seed * 1000 + h), h) for h in range(start + length)]
        peak = max(counts[start - 7 * 24 - 30 : start])
        counts[start:] = [max(LEAST, peak * factor)] * length
        assert [hour for hour in escalations(counts) if hour >= start - 24] == [start]


def test_a_new_level_is_reported_once_and_a_second_rise_again() -> None:
    assert escalations([5] * 100 + [100] * 100 + [1000] * 100) == [100, 200]


def test_nothing_escalates_below_the_least_or_in_its_first_hour() -> None:
    assert escalations([0, *[LEAST - 1] * 3, 0, 0]) == []
    assert escalations([10_000, 9_000, 8_000]) == []
    assert escalations([1, LEAST]) == [1]


def test_fingerprints_are_judged_together() -> None:
    assert not escalates([{0: 1, 1: 12}], 1, 0)
    assert escalates([{0: 1, 1: 12}, {0: 1, 1: 12}], 1, 0)


def test_a_growing_count_is_judged_every_quarter_at_least() -> None:
    judged = [now for now in range(1, 5000) if worth_judging(now - 1, now)]
    assert judged[0] == LEAST
    assert all(later <= earlier * 1.25 + 1 for earlier, later in pairwise(judged))
    assert len(judged) < 40
