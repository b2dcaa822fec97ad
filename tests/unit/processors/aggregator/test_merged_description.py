"""A merged issue is described by its newest event of any fingerprint, and each part by its own after an unmerge."""

import pytest
from msgspec import Raw
from msgspec.structs import replace

from schemas.ids import id_text
from schemas.increments import Description, encode_description
from schemas.issues import IssueRecord
from tests.unit.processors.aggregator.test_merges import merged, unmerged
from tests.unit.processors.aggregator.world import START, World, id_of, increment
from tests.unit.processors.made import event_id


async def happens(world: World, fingerprint: int, after_ms: int) -> None:
    """An event whose words name its fingerprint and time."""
    words = f"{fingerprint} at {after_ms}"
    description = Description(
        f"E{fingerprint}", words, f"f{fingerprint}", "v1", "stack", (f"p{fingerprint}",)
    )
    one = increment(fingerprint, ms=START + after_ms)
    world.send(
        fingerprint,
        replace(one, last_event=event_id(after_ms), description=Raw(encode_description(description))),
    )
    await world.settle()


def described(issue: IssueRecord) -> tuple[str, str, str]:
    return issue.error_type, issue.message, issue.culprit


async def two(world: World) -> None:
    await happens(world, 1, 10)
    await happens(world, 2, 20)


async def test_the_newest_event_describes_a_merged_issue_whichever_part_it_came_to() -> None:
    world = World()
    await two(world)
    issue = await merged(world, 1, 2)
    assert described(issue) == ("E2", "2 at 20", "f2")
    assert issue.last_event == id_text(event_id(20))
    # Its grouping is still that of its first fingerprint.
    assert issue.grouping_parts == ("p1",)
    await happens(world, 1, 30)
    assert described(world.issue(1)) == ("E1", "1 at 30", "f1")
    await happens(world, 2, 40)
    assert described(world.issue(1)) == ("E2", "2 at 40", "f2")
    assert described(await unmerged(world, 1, 2)) == ("E1", "1 at 30", "f1")
    assert described(world.issue(2)) == ("E2", "2 at 40", "f2")


async def test_a_restart_keeps_the_words_of_each_part_apart() -> None:
    world = World()
    await two(world)
    await merged(world, 1, 2)
    world.restart()
    assert described(await unmerged(world, 1, 2)) == ("E1", "1 at 10", "f1")


async def test_words_that_are_taken_out_of_a_part_leave_the_whole_too() -> None:
    world = World()
    await two(world)
    await merged(world, 1, 2)
    world.ask(id_of(2), "redact", {"event": id_text(event_id(20)), "message": "what is left"})
    await world.settle()
    assert described(world.issue(1)) == ("E2", "what is left", "f2")
    world.ask(id_of(2), "redact", {"event": "", "wholly": True})
    await world.settle()
    assert described(world.issue(1)) == ("", "", "")


@pytest.mark.parametrize("left", [0, 10])
async def test_after_an_erasure_an_older_event_than_the_erased_one_describes_the_issue(left: int) -> None:
    world = World()
    for after_ms in (10, 30):
        await happens(world, 1, after_ms)
    rest = {"newest": id_text(event_id(10)), "message": "1 at 10", "newestMs": START + 10} if left else {}
    world.ask(id_of(1), "redact", {"event": id_text(event_id(30))} | rest)
    await world.settle()
    assert world.issue(1).message == ("1 at 10" if left else "")
    await happens(world, 1, 20)
    assert (world.issue(1).message, world.issue(1).last_event) == ("1 at 20", id_text(event_id(20)))
    assert world.issue(1).last_seen_ms == START + 20
    await happens(world, 1, 5)
    assert world.issue(1).message == "1 at 20"
