"""Missing issues are built again from the log where it reaches back to their beginning, never from a part of it."""

import pytest

from processors.aggregator.aggregator_stage import IssuesLost
from processors.aggregator.position import DeltasPosition, decode_position, deltas_key
from processors.grouper.record_counts import issue_of
from tests.unit.processors.aggregator.world import PARTITIONS, PROJECT, Crash, World, increment

PARTITION = issue_of(PROJECT, 1) % PARTITIONS


async def counted(increments: int = 10) -> World:
    """One issue of which so many increments are folded, one at a time."""
    world = World()
    for _ in range(increments):
        world.send(1, increment(1))
        await world.settle(1)
    return world


async def test_issues_that_are_missing_are_built_again_where_nothing_of_the_log_has_expired() -> None:
    world = await counted()
    world.lose("issues")
    await world.settle()
    assert world.issue(1).events == 10


async def test_a_part_of_the_log_is_not_counted_as_all_there_was() -> None:
    world = await counted()
    with pytest.raises(
        IssuesLost, match=r"issues/\d holds 0 of 1 issues, .* begins at 7: `svc rebuild issues`"
    ):
        world.lose("issues", begins=7)


async def test_when_both_tables_are_lost_a_log_that_has_begun_to_expire_says_so() -> None:
    world = await counted()
    with pytest.raises(IssuesLost, match=r"holds 0 of \? issues"):
        world.lose("issues", "seen", begins=7)


async def test_positions_that_are_lost_alone_are_no_reason_to_stop() -> None:
    world = await counted()
    del world.memory.topics["seen", PARTITION]
    world.resume(begins=7)
    await world.settle()
    assert world.issue(1).events == 10


async def test_a_state_that_was_written_late_is_folded_on_though_the_log_has_begun_to_expire() -> None:
    world = await counted()
    states = world.memory.topics["issues", PARTITION]
    states.append(states[7])
    world.resume(begins=7)
    await world.settle()
    assert world.issue(1).events == 10


async def test_issues_built_otherwise_are_gone_on_with_from_the_position_that_goes_with_them() -> None:
    """As `svc rebuild issues` leaves them: fewer of them, of other versions."""
    world = await counted()
    world.lose("issues")
    built = increment(1, events=25)
    world.note(PARTITION, DeltasPosition(9, 0, 0))
    world.resume(begins=7)
    world.send(1, built)
    await world.settle()
    assert world.issue(1).events == 25
    position = world.memory.topics["seen", PARTITION][-1]
    assert position.key == deltas_key(PARTITION)
    assert decode_position(position.value or b"") == DeltasPosition(10, 1, 1, until=10)


async def test_issues_of_an_interrupted_batch_stand_for_none_that_was_lost_before_it_was_recorded() -> None:
    world = World()
    world.send(1, increment(1))
    await world.settle()
    del world.memory.topics["issues", PARTITION]
    world.send(3, increment(3))
    # After the issue is recorded, before the position is.
    world.memory.crash_in = 4
    with pytest.raises(Crash):
        await world.settle()
    world.memory.crash_in = None
    world.resume()
    assert not world.knows(1)
    assert world.knows(3)
    await world.settle()
    assert (world.issue(1).events, world.issue(3).events) == (1, 1)
