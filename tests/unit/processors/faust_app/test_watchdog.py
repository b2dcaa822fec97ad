import pytest

from processors.faust_app.watchdog import Stalled, Watchdog


def test_work_that_waits_without_progress_is_noticed() -> None:
    watchdog = Watchdog()
    watchdog.check("events/0", 5, waiting=True, seconds=-1)
    with pytest.raises(Stalled, match="events/0"):
        watchdog.check("events/0", 5, waiting=True, seconds=-1)


def test_progress_is_enough() -> None:
    watchdog = Watchdog()
    for offset in range(3):
        watchdog.check("events/0", offset, waiting=True, seconds=-1)


def test_nothing_to_do_is_no_stall() -> None:
    watchdog = Watchdog()
    for _ in range(3):
        watchdog.check("events/0", 5, waiting=False, seconds=-1)


def test_a_stall_is_counted_from_when_work_came() -> None:
    watchdog = Watchdog()
    watchdog.check("events/0", 5, waiting=False, seconds=60)
    watchdog.check("events/0", 5, waiting=True, seconds=60)


def test_what_may_not_move_while_partitions_change_hands_is_no_stall_afterwards() -> None:
    watchdog = Watchdog()
    watchdog.check("events/0", 5, waiting=True, seconds=-1)
    watchdog.only("recovery")
    watchdog.check("events/0", 5, waiting=True, seconds=-1)
