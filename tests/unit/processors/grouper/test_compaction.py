"""Entries stay few and young, with the same content."""

from processors.grouper.compaction import MERGE_AT, LogCompaction
from processors.grouper.dedup_log import (
    DedupEntry,
    DedupRecord,
    decode_entry,
    decode_horizon,
    encode,
    entry_key,
    horizon_key,
    is_entry,
)
from processors.grouper.dedupe import Dedupe, Incoming
from processors.grouper.log_clock import started
from processors.grouper.recovered import recovered
from processors.grouper.replay_start import replay_start
from schemas.times import DAY_MS
from tests.unit.processors.made import START, apply, event_id

DAYS = 7


def log(count: int, each_ms: int = 1000) -> tuple[dict[bytes, bytes], LogCompaction]:
    """A table of entries of one event each, as a quiet service writes them.

    Days of the log are those of the timestamps.
    """
    dedupe, part, entries = Dedupe(DAYS), dict[bytes, bytes](), LogCompaction(0, {})
    for offset in range(count):
        ids = [event_id(offset)]
        [decision] = dedupe.decide([Incoming(offset, START + offset * each_ms, [1], ids)])
        record = DedupRecord(offset, 1, None, decision.keys, b"12345678")
        entry = DedupEntry(
            decision.watermark_ms, offset, [record], clock=started(offset, decision.watermark_ms)
        )
        key = entry_key(0, offset, offset, epoch=0)
        part[key] = encode(entry)
        entries.add_entries({key: entry})
    return part, entries


def compact(part: dict[bytes, bytes], entries: LogCompaction, oldest_day: int) -> None:
    for changes in entries.compact(part, oldest_day):
        apply(part, changes)


def known(part: dict[bytes, bytes]) -> list[DedupEntry]:
    return [decode_entry(value) for key, value in part.items() if is_entry(key)]


def test_small_entries_are_merged_once_there_are_enough() -> None:
    part, entries = log(MERGE_AT + 1)
    assert entries.needed(0)
    compact(part, entries, 0)
    assert len(part) == 2
    assert not entries.needed(0)


def test_few_entries_are_left_alone() -> None:
    _, entries = log(MERGE_AT)
    assert not entries.needed(0)


def test_merged_entries_have_the_content_of_the_small_ones() -> None:
    part, entries = log(MERGE_AT + 40, each_ms=DAY_MS // 200)
    before = known(part)
    compact(part, entries, 0)
    one, other = Dedupe(DAYS), Dedupe(DAYS)
    one.restore(before)
    other.restore(known(part))
    again = [Incoming(n, START + 5 * DAY_MS, [1], [event_id(n)]) for n in range(MERGE_AT + 60)]
    assert [d.new for d in one.decide(again)] == [d.new for d in other.decide(again)]
    assert replay_start(before, 0).next_offset == replay_start(known(part), 0).next_offset


def test_entries_of_two_days_are_not_merged_with_each_other() -> None:
    part, entries = log(MERGE_AT + 1, each_ms=DAY_MS // 100)
    compact(part, entries, 0)
    for entry in known(part):
        assert len({(START + r.offset * (DAY_MS // 100)) // DAY_MS for r in entry.records}) == 1


def test_every_point_between_two_writes_can_be_recovered_from() -> None:
    part, entries = log(MERGE_AT + 1)
    for changes in entries.compact(part, 0):
        for change in changes:
            apply(part, [change])
            assert replay_start(known(part), 0).next_offset == MERGE_AT


def test_an_old_day_goes_and_is_no_hole() -> None:
    part, entries = log(2 * MERGE_AT, each_ms=DAY_MS // 100)
    compact(part, entries, 0)
    day = START // DAY_MS + 2
    assert entries.needed(day)
    removed = 0
    for changes in entries.compact(part, day):
        # A worker may be killed between two writes: expired entries must not look like a hole then.
        removed += sum(value is None for _, value in changes)
        assert not removed or horizon_key(0) in part
        apply(part, changes)
    assert removed
    horizon = decode_horizon(part[horizon_key(0)])
    left = known(part)
    assert min(entry.first for entry in left) == horizon > 0
    assert replay_start(left, horizon).next_offset == 2 * MERGE_AT - 1
    start = recovered(0, part, 0, DAYS, 10).start
    assert (start.next_offset, start.lost) == (2 * MERGE_AT - 1, False)


def test_a_hole_between_entries_stays_one() -> None:
    part, _ = log(MERGE_AT + 2)
    del part[entry_key(0, 100, 100, epoch=0)]
    entries = LogCompaction(0, {key: decode_entry(value) for key, value in part.items()})
    compact(part, entries, 0)
    assert replay_start(known(part), 0).next_offset == 100
