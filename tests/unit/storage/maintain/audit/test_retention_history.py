from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from storage.maintain.audit.retention_history import RetentionDays, RetentionHistory

TODAY = date(2026, 3, 1)
SHORT, LONG = RetentionDays(7, 7), RetentionDays(90, 30)


def ago(days: int) -> date:
    return TODAY - timedelta(days=days)


def test_events_before_a_retention_was_raised_are_kept_for_the_shorter_one() -> None:
    raised = RetentionHistory(
        "shop", LONG, ((ago(80), SHORT), (ago(50), SHORT), (ago(20), LONG), (ago(3), LONG))
    )
    assert raised.shortest(ago(60)) == SHORT
    # The last that was seen before holds until another is, and a day longer.
    assert raised.shortest(ago(30)) == raised.shortest(ago(20)) == raised.shortest(ago(19)) == SHORT
    assert raised.shortest(ago(18)) == raised.shortest(TODAY) == LONG


def test_events_before_a_retention_was_lowered_may_be_written_after_it() -> None:
    lowered = RetentionHistory("shop", SHORT, ((ago(80), LONG), (ago(20), SHORT)))
    assert lowered.shortest(ago(60)) == lowered.shortest(TODAY) == SHORT


def test_events_and_payloads_are_judged_apart() -> None:
    kept = RetentionHistory(
        "shop", RetentionDays(60, 60), ((ago(40), RetentionDays(90, 10)), (ago(20), RetentionDays(60, 60)))
    )
    assert kept.shortest(ago(30)) == RetentionDays(60, 10)
    assert kept.shortest(ago(5)) == RetentionDays(60, 60)


def test_without_a_past_it_is_todays_retention() -> None:
    assert RetentionHistory("shop", LONG).shortest(ago(400)) == LONG


RETENTIONS = st.builds(RetentionDays, st.integers(1, 90), st.integers(1, 90))


@given(st.dictionaries(st.integers(0, 9), RETENTIONS, min_size=1), st.integers(0, 12))
def test_no_retention_that_held_on_the_day_or_later_is_shorter(
    by_day: dict[int, RetentionDays], came: int
) -> None:
    # One a day: the first was there before it was seen, each next one holds from its day on.
    ages = [min((day for day in by_day if day >= when), default=max(by_day)) for when in range(came + 1)]
    held = [by_day[age] for age in ages]
    seen = tuple((ago(day), retention) for day, retention in by_day.items())
    least = RetentionHistory("", held[0], seen).shortest(ago(came))
    assert least.events <= min(one.events for one in held)
    assert least.payloads <= min(one.payloads for one in held)
