"""An erasure's effect in the processors: an erased event's words leave its issue's record, the numbers stay."""

from msgspec.structs import replace

from schemas.ids import id_text
from schemas.increments import Increment
from tests.unit.processors.aggregator.test_merges import merged, unmerged, with_issues
from tests.unit.processors.aggregator.world import START, World, id_of, increment
from tests.unit.processors.made import event_id

ERASED, LEFT = id_text(event_id(2)), id_text(event_id(1))
REDACTION = {"event": ERASED, "newest": LEFT, "message": "what is left"}


async def described(world: World) -> None:
    """Two events; the second, which the issue is described by, is to be erased."""
    for number in (1, 2):
        world.send(1, an_event(number))
    await world.settle()


def an_event(number: int) -> Increment:
    return replace(increment(users=[number], ms=START + number), last_event=event_id(number))


async def test_the_newest_event_left_describes_the_issue_and_the_counts_stay() -> None:
    world = World()
    await described(world)
    before = world.issue(1)
    assert before.last_event == ERASED
    world.ask(id_of(1), "redact", REDACTION, "erase-1")
    await world.settle()
    after = world.issue(1)
    assert (after.message, after.last_event) == ("what is left", LEFT)
    assert (after.events, after.users, after.releases) == (before.events, before.users, before.releases)
    assert world.dead_letter_messages() == []
    world.ask(id_of(1), "redact", REDACTION, "erase-1")
    await world.settle()
    assert world.issue(1).version == after.version


async def test_an_issue_that_a_later_event_describes_keeps_its_words() -> None:
    world = World()
    await described(world)
    world.send(1, an_event(3))
    world.ask(id_of(1), "redact", REDACTION)
    await world.settle()
    assert (world.issue(1).message, world.issue(1).last_event) == ("m", id_text(event_id(3)))


async def test_words_that_were_taken_out_stay_out_through_crashes_and_lost_tables() -> None:
    world = World()
    await described(world)
    world.ask(id_of(1), "redact", REDACTION)
    await world.settle()
    world.restart()
    world.ask(id_of(1), "update", {"assignee": "bob"})
    await world.settle()
    assert world.issue(1).message == "what is left"
    world.lose()
    await world.settle()
    assert (world.issue(1).message, world.issue(1).assignee) == ("what is left", "bob")


async def test_a_merged_issues_own_words_are_taken_out_too() -> None:
    world = await with_issues(1, 2)
    await merged(world, 1, 2)
    own = world.issue(2)
    world.ask(id_of(2), "redact", {"event": own.last_event, "message": "other"})
    await world.settle()
    assert world.issue(2).message == "other"
    assert world.issue(2).merged_into == id_of(1)
    await unmerged(world, 1, 2)
    assert world.issue(2).message == "other"


async def test_of_an_erased_projects_issue_numbers_and_times_are_left() -> None:
    world = World()
    await described(world)
    world.ask(id_of(1), "update", {"assignee": "bob", "resolvedIn": "app@1.0.0+1"})
    world.ask(id_of(1), "redact", {"wholly": True}, "erase-1")
    await world.settle()
    left = world.issue(1)
    words = (
        left.error_type,
        left.message,
        left.culprit,
        left.users_sketch,
        left.first_release,
        left.last_event,
    )
    assert set(words) == {""}
    assert (left.releases, left.environments, left.grouping_parts) == ({}, {}, ())
    assert (left.assignee, left.resolved_in, left.life.fix) == (None, None, None)
    assert (left.events, left.users, left.first_seen_ms) == (2, 2, START + 1)
    world.restart()
    await world.settle()
    assert world.issue(1) == left
