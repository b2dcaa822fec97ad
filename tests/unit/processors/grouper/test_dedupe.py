"""Deduplication: a function of the log's prefix, and of nothing else."""

import time
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.grouper.dedup_log import DedupEntry, DedupRecord, decode_entry, encode
from processors.grouper.dedupe import Decision, Dedupe, Incoming
from processors.grouper.log_clock import DAY_RECORDS
from processors.grouper.replay_start import replay_start
from schemas.times import DAY_MS
from tests.unit.processors.made import START, event_id

DAYS = 7

numbers = st.integers(0, 30)
records = st.lists(
    st.tuples(
        st.integers(-3 * DAY_MS, 12 * DAY_MS), st.lists(st.tuples(st.integers(1, 2), numbers), max_size=6)
    ),
    max_size=25,
)


def incoming(made: list[tuple[int, list[tuple[int, int]]]]) -> list[Incoming]:
    """A log that was cut out of a longer one, so that each record may begin a day."""
    return [
        Incoming(offset * DAY_RECORDS, START + ms, [p for p, _ in ids], [event_id(n) for _, n in ids])
        for offset, (ms, ids) in enumerate(made)
    ]


def recorded(log: list[Incoming], decisions: list[Decision], sizes: list[int]) -> list[DedupEntry]:
    """Entries as batches of these sizes would have been recorded: each of one day."""
    entries: list[DedupEntry] = []
    at = 0
    for size in [*sizes, len(log)]:
        day, batch_start = -1, at
        for record, decision in zip(log[at : at + size], decisions[at : at + size], strict=True):
            if decision.clock.day != day:
                day = decision.clock.day
                entries.append(DedupEntry(decision.watermark_ms, batch_start, [], clock=decision.clock))
            seen = DedupRecord(record.offset, len(record.ids), decision.new, decision.keys)
            entries[-1].records.append(seen)
        at += size
    return [decode_entry(encode(entry)) for entry in entries if entry.records]


@given(records, st.lists(st.integers(1, 5), max_size=10))
def test_decisions_do_not_depend_on_how_the_log_was_cut_into_batches(
    made: list[tuple[int, list[tuple[int, int]]]], sizes: list[int]
) -> None:
    log = incoming(made)
    whole = [d.new for d in Dedupe(DAYS).decide(log)]
    dedupe, cut, at = Dedupe(DAYS), [], 0
    for size in [*sizes, len(log)]:
        cut += [d.new for d in dedupe.decide(log[at : at + size])]
        at += size
    assert cut == whole


@given(records, st.lists(st.integers(1, 5), max_size=10), st.integers(0, 25))
def test_a_worker_that_takes_over_decides_as_the_first_would_have(
    made: list[tuple[int, list[tuple[int, int]]]], sizes: list[int], cut: int
) -> None:
    log = incoming(made)
    whole = Dedupe(DAYS).decide(log)
    successor = Dedupe(DAYS)
    successor.restore(recorded(log[:cut], whole[:cut], sizes))
    assert [d.new for d in successor.decide(log[cut:])] == [d.new for d in whole[cut:]]


@given(records)
def test_restoring_the_same_entries_again_changes_nothing(
    made: list[tuple[int, list[tuple[int, int]]]],
) -> None:
    log = incoming(made)
    entries = recorded(log, Dedupe(DAYS).decide(log), [2, 3])
    once, twice = Dedupe(DAYS), Dedupe(DAYS)
    once.restore(entries)
    twice.restore(entries + entries[:2])
    assert len(once) == len(twice)
    assert once.oldest_day == twice.oldest_day


def one(dedupe: Dedupe, number: int, ms: int, offset: int = 0) -> bool:
    """Whether an id that arrives at a time of the log is new."""
    return bool(dedupe.decide([Incoming(offset, ms, [1], [event_id(number)])])[0].new)


def pass_days(dedupe: Dedupe, offset: int, days: int) -> int:
    """Records without events, enough of them every 12 hours; returns the next offset."""
    for half in range(2 * days):
        dedupe.decide([Incoming(offset, START + half * DAY_MS // 2, [], [])])
        offset += DAY_RECORDS
    return offset


def test_an_id_is_remembered_for_the_whole_window() -> None:
    dedupe = Dedupe(DAYS)
    one(dedupe, 1, START)
    offset = pass_days(dedupe, 1, DAYS)
    assert not one(dedupe, 1, START + DAYS * DAY_MS - 1, offset)


def test_an_id_is_forgotten_a_day_after_the_window() -> None:
    dedupe = Dedupe(DAYS)
    one(dedupe, 1, START)
    offset = pass_days(dedupe, 1, DAYS + 1)
    assert one(dedupe, 1, START + (DAYS + 1) * DAY_MS, offset)


@given(st.lists(st.integers(-400 * DAY_MS, 400 * DAY_MS), min_size=1, max_size=DAYS))
def test_whatever_the_timestamps_an_id_outlives_many_records_for_each_day(stamps: list[int]) -> None:
    dedupe = Dedupe(DAYS)
    one(dedupe, 1, START)
    dedupe.decide([Incoming(DAY_RECORDS * n, START + ms, [], []) for n, ms in enumerate(stamps)])
    assert not one(dedupe, 1, START + stamps[-1], DAY_RECORDS * len(stamps))


def test_old_entries_without_a_clock_are_taken_up() -> None:
    dedupe = Dedupe(DAYS)
    [decision] = dedupe.decide([Incoming(0, START, [1], [event_id(1)])])
    successor = Dedupe(DAYS)
    old = (START, 0, [(0, 1, None, decision.keys)])
    successor.restore([decode_entry(encode(old))])
    assert successor.oldest_day == dedupe.oldest_day
    assert not one(successor, 1, START + 1, 1)


def test_ids_with_invented_times_are_remembered_too() -> None:
    dedupe = Dedupe(DAYS)
    wild = [event_id(1, 0), event_id(1, (1 << 48) - 1), event_id(1, START + 400 * DAY_MS)]
    first = dedupe.decide([Incoming(0, START, [1] * 3, wild)])
    again = dedupe.decide([Incoming(DAY_RECORDS, START + DAY_MS, [1] * 3, wild)])
    assert [first[0].new, again[0].new] == [[0, 1, 2], []]


@pytest.mark.parametrize("clock", [lambda: 0.0, lambda: 4e9])
def test_the_machine_clock_is_not_asked(monkeypatch: pytest.MonkeyPatch, clock: Callable[[], float]) -> None:
    monkeypatch.setattr(time, "time", clock)
    monkeypatch.setattr(time, "time_ns", lambda: int(clock() * 1e9))
    dedupe = Dedupe(DAYS)
    assert [one(dedupe, 1, START), one(dedupe, 1, START + DAY_MS, DAY_RECORDS)] == [True, False]


def entry(first: int, last: int, batch_start: int | None = None) -> DedupEntry:
    made = [DedupRecord(offset, 0, [], b"") for offset in range(first, last + 1)]
    return DedupEntry(START, first if batch_start is None else batch_start, made)


REPLAYS = {
    "the last take is forwarded again": ([entry(0, 9), entry(10, 14, 10), entry(15, 19, 10)], 0, 10, range(10, 20)),
    "nothing is recorded": ([], 5, None, ()),
    "back to a hole; entries recorded after it are kept": (
        [entry(0, 4), entry(8, 9), entry(10, 12)], 0, 5, range(8, 13)
    ),
    "missing at the head is a hole": ([entry(8, 9)], 3, 3, range(8, 10)),
    "before the start of the log nothing is missed": ([entry(8, 9), entry(10, 11)], 8, 10, range(10, 12)),
    "the log begins after all entries": ([entry(0, 9)], 50, 50, ()),
}  # fmt: skip


@pytest.mark.parametrize(("entries", "start", "next_offset", "decided"), REPLAYS.values(), ids=REPLAYS)
def test_a_replay_begins_where_something_may_be_missing(
    entries: list[DedupEntry], start: int, next_offset: int | None, decided: Iterable[int]
) -> None:
    resumed = replay_start(entries, start)
    assert (resumed.next_offset, sorted(resumed.decided)) == (next_offset, list(decided))
