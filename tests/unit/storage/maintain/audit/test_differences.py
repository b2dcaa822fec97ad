"""Exact data never differs, in whatever order events arrive between two readings; a lost or doubled row always does."""

from collections import Counter
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from storage.maintain.audit.differences import (
    HOUR,
    AuditDifference,
    AuditReading,
    ConfirmedDifferences,
    EventCounts,
    find_differences,
)

SINCE = 100 * HOUR
UNTIL = 103 * HOUR
Event = tuple[int, int, bool]
"""Project, time of receipt, and whether it is a duplicate."""
EVENTS = st.lists(st.tuples(st.integers(1, 3), st.integers(SINCE, UNTIL - 1), st.booleans()), max_size=30)


def counts(keys: Sequence[tuple[int, int]]) -> EventCounts:
    totals = Counter(keys)
    return EventCounts([p for p, _ in totals], [t for _, t in totals], list(totals.values()))


def reading(accepted: Sequence[Event], stored: Sequence[Event], counted: Sequence[Event]) -> AuditReading:
    """A reading whose outcomes, events and a rollup have got to different events."""
    rows = [(project, at // 60 * 60) for project, at, duplicate in stored if not duplicate]
    return AuditReading(
        accepted=counts([(project, at // 60 * 60) for project, at, _ in accepted]),
        ended=counts([(project, at // 60 * 60) for project, at, duplicate in accepted if duplicate]),
        stored=counts(rows),
        events=counts([(project, at // HOUR * HOUR) for project, at in rows]),
        tables={
            "project_hour": counts(
                [(project, at // HOUR * HOUR) for project, at, duplicate in counted if not duplicate]
            )
        },
    )


@given(EVENTS, EVENTS, EVENTS, st.data())
def test_events_on_their_way_make_no_difference(
    before: list[Event], between: list[Event], after: list[Event], data: st.DataObject
) -> None:
    def some(of: list[Event]) -> list[Event]:
        return data.draw(st.permutations(of))[: data.draw(st.integers(0, len(of)))]

    # At first each table has its own part of the events so far. When the ends are passed, it has all of them,
    # and some of the later ones.
    first = reading(*(some(before) for _ in range(3)))
    second = reading(*(before + between + some(after) for _ in range(3)))
    known = before + between
    assert find_differences(first, second, SINCE, UNTIL) == []
    assert find_differences(reading(known, known, known), reading(known, known, known), SINCE, UNTIL) == []


@given(EVENTS.filter(lambda events: any(not duplicate for *_, duplicate in events)), st.booleans())
def test_a_lost_or_doubled_row_is_found(events: list[Event], lost: bool) -> None:
    index = next(number for number, event in enumerate(events) if not event[2])
    changed = events[:index] + events[index + 1 :] if lost else [*events, events[index]]
    project, at, _ = events[index]
    found = reading(events, changed, events)
    stored, counted = ("missing", "surplus") if lost else ("surplus", "missing")
    assert find_differences(found, found, SINCE, UNTIL) == [
        AuditDifference(project, at // HOUR * HOUR, "stored", stored, 1),  # type: ignore[arg-type]
        AuditDifference(project, at // HOUR * HOUR, "project_hour", counted, 1),  # type: ignore[arg-type]
    ]


def test_a_project_is_left_out_that_erases_or_may_expire() -> None:
    events: list[Event] = [(1, SINCE, False), (1, SINCE, False)]
    found = reading(events, events[:1], events[:1])
    assert len(find_differences(found, found, SINCE, UNTIL)) == 1
    assert find_differences(found, found, SINCE, UNTIL, skipped={1}) == []
    assert find_differences(found, found, SINCE, UNTIL, expiring={1}) == []
    doubled = reading(events[:1], events, events)
    assert len(find_differences(doubled, doubled, SINCE, UNTIL, expiring={1})) == 1


def test_younger_events_and_those_before_the_window_are_not_judged() -> None:
    events: list[Event] = [(1, UNTIL, False), (1, SINCE - HOUR, False)]
    found = reading(events, [], [])
    assert find_differences(found, found, SINCE, UNTIL) == []


def test_a_difference_counts_that_two_audits_in_a_row_have_found() -> None:
    confirmed = ConfirmedDifferences()
    one = AuditDifference(1, SINCE, "stored", "missing", 1)
    assert confirmed.confirm([one]) == []
    assert confirmed.confirm([]) == []
    assert confirmed.confirm([one]) == []
    assert confirmed.confirm([AuditDifference(1, SINCE, "stored", "missing", 2)]) != []


def test_counts_of_an_hour_replace_those_of_its_minutes() -> None:
    minutes = EventCounts([1, 1, 2], [SINCE, SINCE + 60, SINCE + HOUR], [3, 4, 5])
    assert minutes.without(set(), {SINCE}).positive() == {(2, SINCE + HOUR): 5}
    assert minutes.without({SINCE}, set()).positive() == {(1, SINCE + 60): 4, (2, SINCE + HOUR): 5}
    assert minutes.by_hour().positive() == {(1, SINCE): 7, (2, SINCE + HOUR): 5}


def test_a_sum_that_wraps_is_a_difference() -> None:
    assert EventCounts.total(
        [EventCounts([1], [SINCE], [5]), EventCounts([1], [SINCE], [-2])]
    ).positive() == {(1, SINCE): 3}
