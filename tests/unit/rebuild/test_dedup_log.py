"""Ids from ClickHouse as entries of `seen`: stored ids are repeats, and reading resumes after the last record."""

from hypothesis import given
from hypothesis import strategies as st

from processors.grouper.compaction import BLOCK_IDS, LogCompaction
from processors.grouper.dedup_log import DedupEntry, decode_entry, decode_horizon, horizon_key, is_entry
from processors.grouper.dedupe import Dedupe, Incoming
from processors.grouper.log_clock import DAY_RECORDS
from processors.grouper.replay_start import replay_start
from rebuild.rebuilt_ids import IdKeys, entries
from schemas.ids import event_partition
from tests.unit.processors.made import DAY, START, event_id

PARTITIONS = 3
DAYS = 7


def restored(
    partition: int, log_records: dict[bytes, bytes]
) -> tuple[Dedupe, int | None, dict[bytes, DedupEntry]]:
    decoded = {key: decode_entry(value) for key, value in log_records.items() if is_entry(key)}
    dedupe = Dedupe(DAYS)
    dedupe.restore(decoded.values())
    horizon = log_records.get(horizon_key(partition))
    resumed = replay_start(list(decoded.values()), decode_horizon(horizon) if horizon else 0)
    assert resumed.decided == {}
    return dedupe, resumed.next_offset, decoded


stored = st.lists(
    st.tuples(st.integers(1, 2), st.integers(0, 500), st.integers(0, DAYS * DAY)),
    max_size=60,
    unique_by=lambda one: one[:2],
)


@given(stored, st.integers(0, 50))
def test_each_stored_id_is_a_repeat_and_a_new_one_is_not(
    events: list[tuple[int, int, int]], last: int
) -> None:
    received = sorted({(START + ms) // DAY for _, _, ms in events}, reverse=True)
    ids = IdKeys(PARTITIONS, received, DAYS)
    rows = [(project, event_id(number), START + ms) for project, number, ms in events]
    ids.add_events(rows)
    newest = max((ms for _, _, ms in rows), default=START)
    for partition in range(PARTITIONS):
        log_records = dict(entries(partition, last, ids.blocks(partition), newest // DAY))
        dedupe, is_due, decoded = restored(partition, log_records)
        assert is_due == last + 1
        mine = [(p, i) for p, i, _ in rows if event_partition(p, i, PARTITIONS) == partition]
        new = event_id(10_001)
        incoming = Incoming(last + 1, newest, [*(p for p, _ in mine), 1], [*(i for _, i in mine), new])
        [decision] = dedupe.decide([incoming])
        assert decision.new == [len(mine)]
        assert not LogCompaction(partition, decoded).needed(dedupe.oldest_day)


def test_where_nothing_was_processed_nothing_is_written() -> None:
    assert list(entries(0, -1, [], 3)) == []


def test_many_ids_make_blocks_of_bounded_size() -> None:
    ids = IdKeys(1, [START // DAY], DAYS)
    ids.add_events((1, event_id(number), START) for number in range(2 * BLOCK_IDS + 5))
    log_records = dict(entries(0, 100, ids.blocks(0), START // DAY))
    sizes = [decode_entry(value).ids for key, value in log_records.items() if is_entry(key)]
    assert sorted(sizes) == [5, BLOCK_IDS, BLOCK_IDS]
    dedupe, is_due, _ = restored(0, log_records)
    assert (len(dedupe), is_due) == (2 * BLOCK_IDS + 5, 101)


@given(st.lists(st.integers(-3, 400), min_size=1, max_size=DAYS + 2, unique=True))
def test_no_invented_time_of_receipt_makes_a_stored_id_new(days: list[int]) -> None:
    received = sorted((START // DAY + day for day in days), reverse=True)
    ids = IdKeys(1, received, DAYS)
    ids.add_events((1, event_id(day), day * DAY) for day in received)
    dedupe, is_due, _ = restored(0, dict(entries(0, 100, ids.blocks(0), received[0])))
    assert is_due == 101
    again = Incoming(101, START, [1] * len(received), [event_id(day) for day in received])
    assert dedupe.decide([again])[0].new == []


@given(st.lists(st.integers(-20, 500), min_size=1, max_size=20), st.integers(0, 50), st.integers(0, 3))
def test_ids_of_clocks_that_were_ahead_are_remembered_until_their_own_time_has_passed(
    own: list[int], last: int, received: int
) -> None:
    ids = [event_id(number, START + days * DAY) for number, days in enumerate(own)]
    known = IdKeys(1, [START // DAY], DAYS)
    known.add_events((1, one, START - received * DAY) for one in ids)
    dedupe, _, decoded = restored(0, dict(entries(0, last, known.blocks(0), START // DAY)))
    assert not LogCompaction(0, decoded).needed(dedupe.oldest_day)
    for day in range(1, 60):
        at = Incoming(last + day * DAY_RECORDS, START + day * DAY, [1] * len(ids), ids)
        old = dedupe.old_ids([at])
        assert dedupe.decide([at], old.known | old.unknown.keys())[0].new == []
