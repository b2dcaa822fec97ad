"""Changes by a team and by events, through the real aggregator; `test_histories` tries them at random."""

import pytest
from msgspec.structs import replace

from schemas.issues import FINDINGS, Command, DeltaRecord, IssueRecord
from schemas.merges import Signal
from schemas.times import iso
from tests.unit.processors.aggregator.world import PARTITIONS, START, World, id_of, increment

OLD, FIX, NEW = "app@1.9.0+9", "app@1.10.0+2", "app@1.11.0+1"


async def seen(world: World, *releases: str) -> IssueRecord:
    """The issue after events of these releases."""
    world.send(1, *(increment(release=release) for release in releases))
    await world.settle()
    return world.issue(1)


async def updated(world: World, **data: object) -> IssueRecord:
    """The issue after an update."""
    world.ask(id_of(1), "update", data)
    await world.settle()
    return world.issue(1)


def kinds(world: World) -> list[str]:
    return [one.kind for one in world.activities() if one.kind not in FINDINGS]


async def test_the_state_that_an_event_ends_is_in_the_activity() -> None:
    world = World()
    await seen(world, OLD)
    await updated(world, resolvedIn=FIX)
    await seen(world, NEW)
    await updated(world, ignoreUntil={"events": 1})
    await seen(world, NEW)
    assert [one.data for one in world.activities("regressed", "reopened")] == [
        {"release": NEW, "resolvedIn": FIX},
        {"ignoreUntil": {"events": 1}},
    ]


async def test_resolved_in_the_next_release_waits_for_one_newer_than_all_known() -> None:
    world = World()
    await seen(world, OLD)
    await updated(world, resolvedIn="next", known=[OLD, FIX])
    assert (await seen(world, OLD, FIX, "app@1.10.0-beta+7")).status == "resolved"
    assert (await seen(world, NEW)).regressed
    (made,) = world.activities("resolved")
    assert made.data == {"resolvedIn": "next", "after": FIX}


async def test_the_next_release_is_after_the_newest_one_of_the_issues_own_app() -> None:
    world = World()
    await seen(world, OLD)
    await updated(world, resolvedIn="next", known=["other@9.0.0+1", FIX, OLD])
    (made,) = world.activities("resolved")
    assert made.data["after"] == FIX


async def test_ignored_until_a_time_wakes_with_the_first_event_received_by_then() -> None:
    world = World()
    await seen(world, OLD)
    await updated(world, ignoreUntil={"time": iso(START + 5000)})
    new_records = START + 5000
    world.send(1, increment(ms=new_records - 1))
    await world.settle()
    assert world.issue(1).status == "ignored"
    world.send(1, increment(ms=new_records))
    await world.settle()
    assert world.issue(1).status == "open"


async def test_a_comment_is_reported_and_changes_no_state() -> None:
    world = World()
    await seen(world, OLD)
    world.ask(id_of(1), "comment", {"text": "look at the cart"})
    await world.settle()
    (comment,) = world.activities("commented")
    assert (comment.by, comment.data) == ("ann", {"text": "look at the cart"})
    assert world.issue(1).status == "open"


@pytest.mark.parametrize(
    ("kind", "data", "reason"),
    [
        ("explode", {}, "unknown command explode"),
        ("update", {"status": "closed"}, "bad data of update"),
        ("update", {}, "one of status"),
        ("update", {"status": "open", "resolvedIn": "next"}, "resolvedIn only with"),
        ("update", {"ignoreUntil": {"users": 1, "events": 1}}, "exactly one of"),
        ("update", {"ignoreUntil": {"time": "tomorrow"}}, "ISO 8601"),
        ("comment", {"text": ""}, "bad data of comment"),
        ("redact", {"event": 7}, "bad data of redact"),
        ("unmerge", {"fingerprints": ["0" * 16]}, "none of these fingerprints"),
    ],
)
async def test_a_command_that_cannot_be_applied_is_dead_lettered_with_its_reason(
    kind: str, data: dict[str, object], reason: str
) -> None:
    world = World()
    before = await seen(world, OLD)
    world.ask(id_of(1), kind, data)
    world.ask(id_of(1), "update", {"assignee": "bob"})
    await world.settle()
    (letter,) = world.dead_letter_messages()
    assert reason in letter
    assert world.issue(1).assignee == "bob"
    assert world.issue(1).version == before.version + 1


async def test_hundreds_of_commands_to_issues_that_are_not_there_do_not_stop_the_worker() -> None:
    world = World()
    for _ in range(300):
        world.ask(id_of(9), "update", {"status": "open"})
    await world.settle()
    assert set(world.dead_letter_messages()) == {"no such issue"}


@pytest.mark.parametrize(("field", "value"), [("id", ""), ("id", "x" * 201), ("at", "yesterday")])
async def test_a_command_with_a_bad_id_or_time_is_dead_lettered(field: str, value: str) -> None:
    world = World()
    await seen(world, OLD)
    command = Command("c", id_of(1), "1", "comment", "ann", iso(START), {"text": "x"})
    world.put(int(id_of(1), 16) % PARTITIONS, DeltaRecord(command=replace(command, **{field: value})))
    await world.settle()
    assert len(world.dead_letter_messages()) == 1
    assert kinds(world) == ["created"]


async def test_a_signal_between_unknown_issues_is_dead_lettered() -> None:
    world = World()
    world.put(
        0, DeltaRecord(signal=Signal(kind="join", issue="zz", sender="../..", project_id="1", join="j"))
    )
    await world.settle()
    assert len(world.dead_letter_messages()) == 1
