"""Commands under an `Idempotency-Key`: an issue makes the first of a key, and shows to whoever sends another which one that was."""

import pytest

from control.issue_commands import is_done
from schemas.errors import KeyReused
from schemas.idempotency import request_id
from schemas.issues import ActivityKind
from tests.unit.processors.aggregator.test_merges import with_issues
from tests.unit.processors.aggregator.world import World, id_of

FIRST, SECOND = (request_id("k", id_of(1), "comment", text) for text in ("one", "two"))


async def commented(world: World, text: str, name: str) -> None:
    world.ask(id_of(1), "comment", {"text": text}, name)
    await world.settle()


def description(world: World, kind: ActivityKind = "commented") -> list[str]:
    return [one.data["text"] for one in world.activities(kind)]


async def test_a_second_command_under_a_key_is_not_made_and_its_sender_learns_why() -> None:
    world = await with_issues(1)
    await commented(world, "one", FIRST)
    published = len(world.memory.topics["issues", int(id_of(1), 16) % 3])
    await commented(world, "two", SECOND)
    assert description(world) == ["one"]
    # Published again, so that the sender sees it.
    assert len(world.memory.topics["issues", int(id_of(1), 16) % 3]) == published + 1
    assert is_done(world.issue(1), FIRST)
    with pytest.raises(KeyReused):
        is_done(world.issue(1), SECOND)
    assert world.dead_letter_messages() == []


async def test_a_key_stays_used_through_a_restart_and_lost_tables() -> None:
    world = await with_issues(1)
    await commented(world, "one", FIRST)
    for harm in (world.restart, world.lose):
        harm()
        await world.settle()
        await commented(world, "two", SECOND)
        await commented(world, "one", FIRST)
        assert description(world) == ["one"]


async def test_commands_without_a_key_are_each_their_own() -> None:
    world = await with_issues(1)
    for text, name in (("one", "019c1a2b-3c4d-7e5f"), ("two", "019c1a2b-3c4d-7e60")):
        await commented(world, text, name)
    assert description(world) == ["one", "two"]
