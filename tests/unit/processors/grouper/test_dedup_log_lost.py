"""The table of ids is lost, wholly or in part, while rules change.

Every event stays counted once, in the issue that it was counted in.
"""

import random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from processors.grouper.compaction import MERGE_AT
from processors.grouper.dedup_log import decode_entry, is_entry
from processors.grouper.replay_start import PublishedRecord, ReplayBoundary
from processors.positions import LogRecreated
from schemas.chunks import ChunkEvent
from schemas.times import DAY_MS
from tests.unit.processors.aggregator.world import Crash
from tests.unit.processors.grouper.grouper_world import PARTITION, GrouperWorld, registry
from tests.unit.processors.made import START, carried


async def worked(*chunks: list[ChunkEvent], limit: int = 48) -> GrouperWorld:
    """A world in which these records are processed."""
    world = GrouperWorld()
    world.send(*chunks)
    await world.start()
    await world.settle(limit)
    return world


def seen(world: GrouperWorld) -> tuple[Any, ...]:
    """Its outputs as readers see them."""
    return world.stored(), world.forwarded_as(), world.counted(), world.outcomes()


async def test_events_behind_the_last_merged_entry_are_not_counted_again_by_a_rule_that_was_added_since() -> (
    None
):
    """Merged entries are written after those of the last batches: a log that is cut off may hold them alone."""
    world = await worked(*[[carried(n, kind=n % 2)] for n in range(MERGE_AT + 3)], limit=1)
    before = seen(world)
    merged = {key for key, value in world.table().items() if is_entry(key) and decode_entry(value).merged}
    topic = world.memory.topics["seen", PARTITION]
    world.memory.topics["seen", PARTITION] = [m for m in topic if m.key in merged]
    world.rule()
    await world.start()
    await world.settle()
    assert merged
    assert seen(world) == before


async def test_an_event_that_is_stored_is_not_discarded_by_a_rule_that_was_added_since() -> None:
    world = await worked(*[[carried(n, kind=n % 2), carried(0)] for n in range(20)])
    before = seen(world)
    world.lose()
    world.projects = registry(discarded=[f"{value:016x}" for value in world.forwarded_as()])
    await world.start()
    await world.settle()
    assert seen(world) == before


async def test_events_that_a_rule_discarded_are_reported_as_discarded_again() -> None:
    world = await worked([carried(0)])
    [fingerprint] = world.forwarded_as()
    world.projects = registry(discarded=[f"{fingerprint:016x}"])
    world.send([carried(1), carried(2, kind=1)], [carried(1)], [carried(3)])
    await world.start()
    await world.settle()
    before = seen(world)
    assert before[3] == {"accepted": 5, "deadLettered": 2, "duplicate": 1}
    world.lose()
    await world.start()
    await world.settle()
    assert seen(world) == before


async def test_a_repeat_whose_first_has_expired_is_no_new_event() -> None:
    world = await worked([carried(1)], [carried(1)], [carried(2, kind=1)])
    before = seen(world)
    world.lose()
    world.begins = 1
    await world.start()
    await world.settle()
    assert seen(world) == before


async def test_a_dead_letter_that_came_again_readable_is_one_again_where_only_the_second_decision_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The two decisions are of one batch and of two days, hence in two entries of `seen`.
    monkeypatch.setattr("processors.grouper.log_clock.DAY_RECORDS", 1)
    world, unreadable = GrouperWorld(), replace(carried(1), payload=b"no JSON")
    world.send([carried(0)], [unreadable, unreadable, carried(0)])
    world.send([carried(1)], [carried(1)], ms=START + DAY_MS)
    await world.start()
    await world.settle()
    before = seen(world)
    assert before[3] == {"accepted": 6, "deadLettered": 1, "duplicate": 3}
    world.lose(keep=1)
    await world.start()
    await world.settle()
    assert seen(world) == before


async def test_another_log_under_the_same_name_is_not_taken_for_one_that_was_forwarded() -> None:
    world = await worked(*[[carried(n)] for n in range(20)])
    world.lose()
    old, world.log = world.log, []
    world.send(*[[carried(n)] for n in range(100, 110)])
    with pytest.raises(LogRecreated, match="ends at 10, but grouped has its record 19"):
        await world.start()
    world.send(*[[carried(n)] for n in range(110, 140)])
    await world.start()
    with pytest.raises(LogRecreated, match="is not the record that grouped has"):
        await world.settle()
    world.log = old
    assert len(old) == sum(world.stored().values())


def published(*offsets: int) -> list[PublishedRecord]:
    return [PublishedRecord(offset, {0: n}, 0) for n, offset in enumerate(offsets)]


def test_possibly_expired_entries_are_not_taken_for_missing_ones() -> None:
    assert ReplayBoundary.from_records(published(7, 8), 100, whole=False).since == 7
    assert ReplayBoundary.from_records(published(7, 8), 100, whole=True).since == 0


steps = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(1, 6)),
        st.tuples(st.just("work"), st.integers(1, 8)),
        st.tuples(st.just("crash"), st.integers(1, 9)),
        st.tuples(st.just("lose"), st.integers(0, 3)),
        st.tuples(st.just("rule"), st.booleans()),
    ),
    max_size=30,
)


@given(steps, st.integers(0, 1 << 32))
@example([("send", 2), ("work", 2), ("lose", 0), ("work", 1), ("lose", 1), ("rule", True)], 0)
@example([("send", 2), ("work", 1), ("crash", 1), ("work", 2), ("lose", 1), ("rule", True)], 0)
@example([("send", 2), ("work", 1), ("crash", 2), ("lose", 1), ("rule", True), ("work", 2), ("lose", 1)], 0)
@example([("send", 6), ("work", 3), ("crash", 2), ("lose", 0), ("rule", True)], 0)
async def test_whatever_is_lost_whenever_the_worker_dies_each_event_counts_once(
    history: list[tuple[str, Any]], seed: int
) -> None:
    world, luck, sent = GrouperWorld(), random.Random(seed), 0
    await world.start()
    for what, much in history:
        if what == "send":
            chunks = [
                [carried(n := luck.randrange(40), kind=n % 3) for _ in range(luck.randrange(4))]
                for _ in range(much)
            ]
            sent += sum(map(len, chunks))
            world.send(*chunks)
        elif what == "work":
            await world.work(much)
        elif what == "crash":
            world.memory.crash_in = much
            try:
                await world.settle(8)
            except Crash:
                await world.start()
            world.memory.crash_in = None
        elif what == "lose":
            world.lose(keep=much)
            await world.start()
        else:
            world.projects = registry()
            if much:
                world.rule()
            await world.start()
    await world.settle(8)
    ids = {event.id for chunk in world.chunks() for event in chunk}
    assert dict(world.stored()) == dict.fromkeys(ids, 1)
    assert world.counted() == world.forwarded_as()
    outcomes = world.outcomes()
    assert outcomes["accepted"] == sent
    assert outcomes["duplicate"] == sent - len(ids)
