"""An id is a duplicate for as long as its event is stored.

Within the window the grouper knows it from memory; after it the grouper looks it up.
"""

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.faust_app.fence import Interrupted
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
from processors.grouper.dedupe import MAX_AHEAD_DAYS, Dedupe, Incoming
from processors.grouper.grouper_stage import IdsByPartition
from processors.grouper.id_index import id_keys
from processors.grouper.log_clock import DAY_RECORDS, LogClock
from processors.grouper.replay_start import replay_start
from tests.long_forms import first_quick
from tests.unit.processors.grouper.grouper_world import GrouperWorld
from tests.unit.processors.made import DAY, START, apply, carried, event_id

DAYS = 7
Key = tuple[int, bytes]


class Stored:
    """ClickHouse as the grouper sees it: every event that was forwarded."""

    def __init__(self, world: GrouperWorld) -> None:
        self._world = world
        self.lookups: list[list[Key]] = []
        self.interrupt = False

    async def among(self, ids: IdsByPartition) -> set[Key]:
        if self.interrupt:
            raise Interrupted
        wanted = [*chain.from_iterable(ids.values())]
        self.lookups.append(wanted)
        return {(project, i) for project, i in wanted if self._world.stored()[i]}


async def started() -> tuple[GrouperWorld, Stored]:
    world = GrouperWorld()
    stored = Stored(world)
    world.stored_ids = stored
    await world.start()
    return world, stored


async def pass_days(world: GrouperWorld, first: int, last: int) -> None:
    """Days of the log with enough records to count, the ids of which are young."""
    for day in range(first, last):
        for _ in range(DAY_RECORDS):
            world.send([], ms=START + day * DAY)
        world.send([carried(10_000 + day, ms=START + day * DAY)], ms=START + day * DAY)
        await world.settle(DAY_RECORDS)


@pytest.mark.parametrize("days", first_quick([30, 8, 89]))
async def test_an_id_that_is_sent_again_after_days_changes_nothing(days: int) -> None:
    world, stored = await started()
    world.send([carried(1)])
    await pass_days(world, 0, days + 1)
    before = world.counted(), len(world.written("grouped")), world.outcomes()
    world.send([carried(1)], ms=START + days * DAY)
    await world.settle()
    assert (world.counted(), len(world.written("grouped"))) == before[:2]
    assert world.outcomes() - before[2] == {"accepted": 1, "duplicate": 1}
    assert stored.lookups == [[(1, event_id(1))]]


async def test_ids_within_the_window_are_decided_from_memory() -> None:
    world, stored = await started()
    world.send([carried(1)])
    await pass_days(world, 0, DAYS)
    world.send([carried(1), carried(2, ms=START + DAY)], ms=START + DAYS * DAY - 1)
    await world.settle()
    assert stored.lookups == []
    assert world.stored()[event_id(1)] == world.stored()[event_id(2, START + DAY)] == 1


@pytest.mark.parametrize("after", first_quick([20, 10, 19, 25, 28, 60]))
async def test_an_id_of_a_clock_that_was_ahead_is_remembered_until_its_own_time_has_passed(
    after: int,
) -> None:
    world, _ = await started()
    ahead = START + 20 * DAY
    world.send([carried(1, ms=ahead)])
    await pass_days(world, 0, after + 1)
    await world.start()
    world.send([carried(1, ms=ahead)], ms=START + after * DAY)
    await world.settle()
    assert world.stored()[event_id(1, ahead)] == 1


async def test_a_recorded_decision_is_replayed_without_a_look_up() -> None:
    world, stored = await started()
    world.send([carried(1)])
    await world.settle()
    world.send([carried(1), carried(2)], ms=START + 30 * DAY)
    await world.settle()
    stored.lookups.clear()
    stored.interrupt = True
    await world.start()
    await world.settle()
    assert set(world.stored().values()) == {1}


async def test_a_batch_that_is_interrupted_while_it_waits_has_changed_nothing() -> None:
    world, stored = await started()
    world.send([carried(1)], ms=START + 30 * DAY)
    stored.interrupt = True
    before = world.table()
    with pytest.raises(Interrupted):
        await world.work()
    assert (world.table(), world.worker.next_offset(1), world.worker.looking_up) == (before, 0, False)
    stored.interrupt = False
    await world.settle()
    assert world.stored()[event_id(1)] == 1


async def test_records_of_a_lost_table_are_not_taken_for_duplicates_of_themselves() -> None:
    world, stored = await started()
    for number in range(20):
        world.send([carried(number)], ms=START + 30 * DAY)
    await world.settle()
    counted = world.counted()
    stored.lookups.clear()
    world.lose()
    await world.start()
    await world.settle()
    assert (world.counted(), stored.lookups) == (counted, [])
    world.send([carried(number) for number in range(20)], ms=START + 30 * DAY)
    await world.settle()
    assert world.counted() == counted


async def test_an_old_id_that_comes_again_after_the_replay_boundary_is_no_duplicate_before_it() -> None:
    world, stored = await started()
    world.send(*([carried(number)] for number in range(20)), ms=START + 30 * DAY)
    await world.settle()
    world.lose()
    await world.start()
    world.send([carried(number) for number in range(20)], ms=START + 30 * DAY)
    await world.settle()
    assert stored.lookups
    assert world.outcomes() == {"accepted": 40, "duplicate": 20}
    assert [chunk.kept for chunk in world.grouped()] == [[0]] * 20


OWN = st.integers(-60, 60)
BATCHES = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(0, 1), st.lists(st.integers(0, 9), max_size=4)), max_size=4),
        st.sampled_from(["go on", "take over", "compact"]),
    ),
    min_size=5,
    max_size=40,
)


@given(st.lists(OWN, min_size=10, max_size=10), BATCHES)
def test_decisions_are_those_of_a_memory_without_an_end(
    own: list[int], batches: list[tuple[list[tuple[int, list[int]]], str]]
) -> None:
    ids = [event_id(n, START + days * DAY) for n, days in enumerate(own)]
    dedupe, table, offset, day = Dedupe(DAYS), dict[bytes, bytes](), 0, 0
    seen: set[int] = set()
    for batch, then in batches:
        records = []
        for days, numbers in batch:
            day += days
            offset += DAY_RECORDS
            made = [ids[n] for n in numbers]
            records.append(Incoming(offset, START + day * DAY, [1] * len(made), made))
        old = dedupe.old_ids(records)
        stored = old.known | {key for key, (_, i) in old.unknown.items() if i in {ids[n] for n in seen}}
        for (_, numbers), record, decision in zip(
            batch, records, dedupe.decide(records, stored), strict=True
        ):
            new = [n for n, number in enumerate(numbers) if number not in {*seen, *numbers[:n]}]
            assert decision.new == new
            seen.update(numbers)
            kept = DedupRecord(
                record.offset, len(numbers), decision.new, decision.keys, ahead=tuple(decision.ahead)
            )
            entry = DedupEntry(
                decision.watermark_ms, record.offset, [kept], merged=True, clock=decision.clock
            )
            table[entry_key(0, record.offset, record.offset)] = encode(entry)
        if then != "go on":
            if then == "compact":
                for changes in LogCompaction(0, entries_of(table)).compact(dict(table), dedupe.oldest_day):
                    apply(table, changes)
            successor = Dedupe(DAYS)
            successor.restore(entries_of(table).values())
            # Where all entries have expired there is no clock to restore: a small one is always left.
            dedupe = successor if entries_of(table) else dedupe


def entry(offset: int, day: int, ahead: int = 0, *, merged: bool = True) -> DedupEntry:
    """An entry of two ids, one of which may be in the future."""
    keys = id_keys([1, 1], [event_id(2 * offset), event_id(2 * offset + 1)])
    later = [(ahead, keys[16:])] if ahead else []
    record = DedupRecord(offset, 2, None, keys, ahead=tuple(later))
    return DedupEntry(START, offset, [record], merged=merged, clock=LogClock(day, day, 0))


def table_of(*entries: DedupEntry) -> dict[bytes, bytes]:
    return {entry_key(0, one.first, one.last): encode(one) for one in entries}


def entries_of(part: dict[bytes, bytes]) -> dict[bytes, DedupEntry]:
    return {key: decode_entry(value) for key, value in part.items() if is_entry(key)}


def compact(part: dict[bytes, bytes], oldest_day: int) -> dict[bytes, DedupEntry]:
    """The rest of a table; every point on the way can be recovered from."""
    last = max(one.last for one in entries_of(part).values())
    compaction = LogCompaction(0, entries_of(part))
    for changes in compaction.compact(dict(part), oldest_day):
        for change in changes:
            apply(part, [change])
            known = list(entries_of(part).values())
            horizon = [decode_horizon(value) for key, value in part.items() if not is_entry(key)]
            assert replay_start(known, max(horizon, default=0)).next_offset == last
    assert not compaction.needed(oldest_day)
    return entries_of(part)


def test_of_an_expired_entry_only_the_ids_of_the_future_are_left() -> None:
    left = compact(table_of(entry(0, 1, 20), entry(1, 1), entry(2, 1, 30), entry(3, 9, merged=False)), 3)
    old = left[entry_key(0, 0, 2)]
    assert [(record.keys, len(record.ahead)) for record in old.records] == [(b"", 1), (b"", 1)]
    assert (old.only_ahead, old.last_needed, len(left)) == (True, 31, 2)


def test_an_expired_entry_of_one_record_is_replaced_in_its_place() -> None:
    left = compact(table_of(entry(0, 1, 20), entry(1, 9, merged=False)), 3)
    assert left[entry_key(0, 0, 0)].only_ahead


def test_the_rest_is_removed_once_its_days_have_passed() -> None:
    table = table_of(entry(0, 1, 20), entry(1, 2), entry(2, 30, merged=False))
    assert {one.first for one in compact(table, 3).values()} == {2, 0}
    assert {one.first for one in compact(table, 21).values()} == {2, 0}
    assert {one.first for one in compact(table, 22).values()} == {2}


def test_a_topic_that_loses_ids_of_the_future_loses_the_horizon_too() -> None:
    table = table_of(entry(0, 1, 20), entry(1, 2, 20), entry(2, 3, 20), entry(3, 30, merged=False))
    compaction, written = LogCompaction(0, entries_of(table)), list(table)
    for day in (2, 3, 4):
        for changes in compaction.compact(dict(table), day):
            apply(table, changes)
            written += [key for key, value in changes if value is not None]
    topic = [key for at, key in enumerate(written) if key in table and key not in written[at + 1 :]]
    assert set(topic) == set(table)
    assert topic.index(horizon_key(0)) < min(topic.index(entry_key(0, n, n)) for n in range(3))


def test_merged_entries_keep_the_ids_of_the_future() -> None:
    small = table_of(*(entry(n, 1, 20, merged=False) for n in range(MERGE_AT + 1)))
    merged = [one for one in compact(small, 0).values() if one.merged]
    assert sum(len(record.ahead) for one in merged for record in one.records) == MERGE_AT


def test_an_id_is_remembered_for_a_bounded_time_however_far_ahead_its_clock_was() -> None:
    wild = event_id(1, (1 << 48) - 1)
    [decision] = Dedupe(DAYS).decide([Incoming(0, START, [1], [wild])])
    assert decision.ahead == [(MAX_AHEAD_DAYS, decision.keys)]


def test_an_event_that_could_not_be_processed_is_forgotten_though_its_clock_was_ahead() -> None:
    dedupe = Dedupe(DAYS)
    later = event_id(1, START + 20 * DAY)
    for offset in range(2):
        [decision] = dedupe.decide([Incoming(offset, START, [1], [later])])
        assert decision.new == [0]
        dedupe.forget(decision.keys)


def test_ids_without_a_time_count_as_young() -> None:
    random = bytes([0, 0, 0, 0, 0, 0, 0x40, 0, 0x80, *range(7)])
    assert Dedupe(DAYS).old_ids([Incoming(0, START, [1], [random])]).unknown == {}
    assert Dedupe(DAYS).decide([Incoming(0, START, [1], [random])])[0].ahead == []
