"""Commands under an `Idempotency-Key`: an issue applies the first of a key, and shows others which one it was."""

import pytest

from control.issue_commands import forwarded_to, is_done, is_made, is_settled
from schemas.errors import KeyReused
from schemas.idempotency import request_id
from schemas.ids import hex64
from schemas.issues import ActivityKind, Command, DeltaRecord
from schemas.times import iso
from tests.unit.processors.aggregator.test_merges import merged, with_issues
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


def published(world: World, fingerprint: int) -> int:
    """How many records of its partition were published."""
    return len(world.memory.topics["issues", int(id_of(fingerprint), 16) % 3])


async def sent(
    world: World, name: str, fingerprint: int, kind: str, project: str = "", **data: object
) -> Command:
    """A command to an issue, worked on."""
    command = Command(name, id_of(fingerprint), project, kind, "ann", iso(0), data)
    world.put(int(command.issue, 16) % 3, DeltaRecord(command=command))
    await world.settle()
    return command


async def test_a_record_is_shown_unchanged_to_who_asks_and_nothing_of_an_issue_that_does_not_exist() -> None:
    world = await with_issues(1)
    before, shown = published(world, 1), world.issue(1)
    for _ in range(2):
        command = await sent(world, "s", 1, "show")
    assert (published(world, 1), world.issue(1)) == (before + 2, shown)
    assert is_settled(shown, command)
    await sent(world, "s", 2, "show")
    assert world.dead_letter_messages() == []
    assert published(world, 1) == before + 2


@pytest.mark.parametrize("again", [False, True])
async def test_the_sender_follows_a_command_to_the_issue_that_it_is_forwarded_to(again: bool) -> None:
    world = await with_issues(1, 2)
    await merged(world, 1, 2)
    for _ in range(1 + again):
        before = published(world, 2)
        command = await sent(world, "c", 2, "comment", text="x")
        assert published(world, 2) > before
    assert is_settled(world.issue(2), command)
    assert forwarded_to(world.issue(2), command) == id_of(1)
    assert is_made(world.issue(1), command)
    assert description(world) == ["x"]


async def test_a_repeat_is_followed_to_the_issue_that_applied_it_though_that_one_is_a_part_now() -> None:
    world = await with_issues(1, 2, 3)
    await merged(world, 1, 2)
    await sent(world, "c", 2, "comment", text="x")
    await merged(world, 3, 1)
    command = await sent(world, "c", 2, "comment", text="x")
    target = forwarded_to(world.issue(2), command)
    assert target == id_of(1)
    await sent(world, "c", 1, "comment", text="x")
    assert is_made(world.issue(1), command)
    assert forwarded_to(world.issue(1), command) is None
    assert description(world) == ["x"]


@pytest.mark.parametrize("again", [False, True])
async def test_the_sender_sees_that_a_command_was_refused(again: bool) -> None:
    world = await with_issues(1)
    for _ in range(1 + again):
        before = published(world, 1)
        foreign = await sent(world, "f", 1, "comment", "99", text="x")
        wrong = await sent(world, "u", 1, "unmerge", fingerprints=[hex64(9)])
        assert published(world, 1) == before + 2
    for command in (foreign, wrong):
        assert is_settled(world.issue(1), command)
        assert forwarded_to(world.issue(1), command) is None
        assert not is_made(world.issue(1), command)
    assert description(world) == []
    assert len(world.dead_letter_messages()) == 2
