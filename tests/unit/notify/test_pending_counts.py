"""Counts of accepted events before they are in the log."""

from notify.project_watch import PendingCounts
from schemas.issues import Outcome, OutcomeKind


def outcome(
    count: int, sequence: int, project: str = "1", outcome: OutcomeKind = "accepted", minute: int = 0
) -> Outcome:
    return Outcome(
        project, f"1970-01-01T05:{minute:02}:00.000Z", "py/1", outcome, "", count, "grouper/0", sequence
    )


def test_accepted_events_are_counted_by_project_and_hour() -> None:
    pending = PendingCounts()
    added = pending.add(
        [outcome(3, 7), outcome(4, 7, minute=59), outcome(5, 7, "2"), outcome(9, 7, "2", "duplicate")]
    )
    assert added == {("1", 5): 7, ("2", 5): 5}
    assert pending.add([outcome(1, 8)]) == {("1", 5): 1}
    assert pending.hours == {"1": {5: 8}, "2": {5: 5}}
    assert pending.size == 2


def test_what_is_published_again_is_not_counted_again() -> None:
    pending = PendingCounts()
    pending.add([outcome(3, 7), outcome(4, 8)])
    assert pending.add([outcome(3, 7)]) == {}
    assert pending.add([outcome(4, 8), outcome(5, 9)]) == {("1", 5): 5}
