"""What the hourly counts of a project show: a rise, or silence, each once; and what they must not show."""

import random
from collections.abc import Iterable, Mapping

import pytest

from notify.project_hours import LEAST_OF_RISE, ProjectHours
from schemas.notifications import Cause, HoursRecord
from tests.unit.hourly_series import ORDINARY

WEEK = 7 * 24
USUAL = ["steady", "busy by day, calm by night", "busy on weekdays", "slowly growing"]
"""Those that always have events, at their times."""


def counted(state: ProjectHours, hours: Mapping[int, int], complete: int, project: str = "1") -> ProjectHours:
    offsets = {0: state.next_offsets.get(0, 0) + 1}
    counts = {project: {hour: count for hour, count in hours.items() if count}}
    state.add(HoursRecord(0, state.next_offsets, offsets, {k: v for k, v in counts.items() if v}, complete))
    return state


def silences(counts: Iterable[int]) -> list[int]:
    """The hours after which a silence is first found, each hour counted as it goes by."""
    state, found, known = ProjectHours(), [], set()
    for hour, count in enumerate(counts):
        counted(state, {hour: count}, hour + 1)
        cause = state.silence("1", {})
        if cause is not None and cause.id not in known:
            known.add(cause.id)
            found.append(hour)
    return found


def series(name: str, seed: int, hours: int) -> list[int]:
    return [ORDINARY[name](random.Random(seed * 1000 + hour), hour) for hour in range(hours)]


@pytest.mark.parametrize("name", [name for name in ORDINARY if name != "gone and back"])
def test_an_ordinary_series_is_never_silent(name: str) -> None:
    assert [found for seed in range(8) if (found := silences(series(name, seed, 7 * WEEK)))] == []


def test_a_pause_of_thirty_hours_is_one_silence_and_not_missed_again_a_week_later() -> None:
    assert silences(series("gone and back", 1, 7 * WEEK)) == [401]


@pytest.mark.parametrize("name", USUAL)
def test_a_project_that_stops_is_missed_once_and_soon_where_it_is_busy(name: str) -> None:
    for seed in range(6):
        start = 4 * WEEK + 11 + 24 * (seed % 5)
        found = silences(series(name, seed, start) + [0] * 2 * WEEK)
        assert len(found) == 1
        assert start < found[0] <= start + 6


def test_a_project_without_two_weeks_of_a_past_is_missed_by_its_last_week_and_a_new_one_not() -> None:
    assert silences([50] * (WEEK + 30) + [0] * 20) == [WEEK + 31]
    assert silences([50] * (WEEK - 30) + [0] * 20) == []


def test_hours_that_were_not_counted_as_they_went_by_are_no_silence() -> None:
    begin = 3 * WEEK
    state = counted(ProjectHours(), dict.fromkeys(range(begin), 50), begin)
    # Nobody counted for five hours, and edges may still have their events in a spool.
    counted(state, {}, begin + 5)
    assert state.silence("1", {}) is None
    counted(state, {}, begin + 6)
    assert state.silence("1", {}) is None
    counted(state, {}, begin + 7)
    cause = state.silence("1", {})
    assert cause is not None
    assert cause.value == "1970-01-22T00:00Z"
    assert (cause.project_id, cause.issue, cause.kind, cause.at) == (
        *("1", "", "projectSilent"),
        "1970-01-22T07:00:00.000Z",
    )


def test_what_comes_in_the_present_hour_ends_a_silence_though_it_is_not_recorded() -> None:
    begin = 3 * WEEK
    state = counted(ProjectHours(), dict.fromkeys(range(begin), 50), begin)
    for hour in range(begin, begin + 3):
        counted(state, {}, hour + 1)
    assert state.silence("1", {}) is not None
    assert state.silence("1", {begin + 3: 1}) is None


def rise(state: ProjectHours, hour: int, pending: int) -> Cause | None:
    return state.rise("1", hour, {hour: pending})


def test_a_rise_is_found_while_its_hour_lasts_and_once_a_day() -> None:
    begin = 2 * WEEK
    state = counted(ProjectHours(), dict.fromkeys(range(begin), 50), begin)
    assert rise(state, begin, 199) is None
    cause = rise(state, begin, 200)
    assert cause is not None
    assert (cause.kind, cause.value, cause.issue) == ("projectEscalated", "200", "")
    state.note(cause)
    assert rise(state, begin + 1, 5000) is None
    assert rise(state, begin + 24, 5000) is not None


def test_counts_of_the_log_and_pending_ones_are_judged_together() -> None:
    begin = 2 * WEEK
    state = counted(ProjectHours(), {**dict.fromkeys(range(begin), 50), begin: 150}, begin)
    assert rise(state, begin, 49) is None
    assert rise(state, begin, 50) is not None


def test_few_events_and_the_first_day_of_a_project_are_no_rise() -> None:
    state = counted(ProjectHours(), dict.fromkeys(range(2 * WEEK), 1), 2 * WEEK)
    assert rise(state, 2 * WEEK, LEAST_OF_RISE - 1) is None
    assert rise(state, 2 * WEEK, LEAST_OF_RISE) is not None
    assert rise(counted(ProjectHours(), {0: 1}, 1), 20, 100_000) is None


def test_a_record_that_another_process_has_written_too_counts_once() -> None:
    state = counted(ProjectHours(), {5: 10}, 6)
    again = HoursRecord(0, {}, {0: 1}, {"1": {5: 10}}, 6)
    state.add(again)
    assert state.count("1", 5) == 10
    longer = HoursRecord(0, {}, {0: 2}, {"1": {5: 10, 6: 1}}, 7)
    state.add(longer)
    assert (state.count("1", 6), state.complete, state.next_offsets) == (0, 6, {0: 1})


def test_a_log_whose_beginning_has_expired_begins_anywhere() -> None:
    state = ProjectHours()
    state.add(HoursRecord(0, {0: 70}, {0: 80}, {"1": {5: 10}}, 6))
    assert (state.count("1", 5), state.next_offsets) == (10, {0: 80})


def test_old_hours_are_forgotten() -> None:
    state = counted(ProjectHours(), dict.fromkeys(range(WEEK), 50), WEEK)
    counted(state, {}, 4 * WEEK)
    assert state.count("1", WEEK - 1) == 50
    assert state.count("1", 0) == 0
