"""Merging and unmerging: right counts at every step, each change told once, in whatever portions the work is done."""

from msgspec.structs import replace

from processors.aggregator.issue_merges import apply_signal
from schemas.ids import hex64
from schemas.issues import DeltaRecord, IssueRecord
from schemas.merges import Signal
from schemas.times import iso
from tests.unit.processors.aggregator.world import PARTITIONS, PROJECT, START, World, id_of, increment

RELEASE = "app@1.0.0+1"


async def with_issues(*fingerprints: int) -> World:
    """A world in which each fingerprint has as many events as its number, each of another user."""
    world = World()
    for fingerprint in fingerprints:
        await events(world, fingerprint, fingerprint)
    return world


async def events(world: World, fingerprint: int, count: int, first_user: int = 1) -> None:
    made = [
        increment(fingerprint, RELEASE, users=[fingerprint * 1000 + first_user + n], ms=START + fingerprint)
        for n in range(count)
    ]
    world.send(fingerprint, *made)
    await world.settle()


async def merged(world: World, into: int, *others: int) -> IssueRecord:
    world.ask(id_of(into), "merge", {"issues": [id_of(other) for other in others]})
    await world.settle()
    return world.issue(into)


async def unmerged(world: World, of: int, *fingerprints: int) -> IssueRecord:
    world.ask(id_of(of), "unmerge", {"fingerprints": [hex64(f) for f in fingerprints]})
    await world.settle()
    return world.issue(of)


def sums(issue: IssueRecord) -> tuple[int, int, dict[str, int]]:
    return issue.events, issue.users, issue.releases


async def test_each_merge_and_unmerge_is_reported_once_in_both_issues() -> None:
    world = await with_issues(1, 2)
    await merged(world, 1, 2)
    await merged(world, 1, 2)
    await unmerged(world, 1, 2)
    description = {(one.issue, one.kind) for one in world.activities("merged", "unmerged")}
    assert description == {(id_of(n), kind) for n in (1, 2) for kind in ("merged", "unmerged")}
    assert len(world.activities("merged", "unmerged")) == 4


async def test_an_event_of_a_merged_fingerprint_regresses_the_issue_that_it_is_a_part_of() -> None:
    world = await with_issues(1, 2)
    await merged(world, 1, 2)
    world.ask(id_of(1), "update", {"resolvedIn": "app@2.0.0+1"})
    await events(world, 2, 1)
    assert world.issue(1).status == "resolved"
    world.send(2, increment(2, "app@2.0.0+1"), increment(2, "app@2.1.0+1"))
    await world.settle()
    assert world.issue(1).regressed
    (description,) = world.activities("regressed")
    assert description.issue == id_of(1)


async def test_a_refused_change_that_comes_again_is_not_made_where_the_issue_was_merged_since() -> None:
    world = await with_issues(1, 2, 3)
    await merged(world, 1, 2)
    data = {"fingerprints": [hex64(1)]}
    command = world.ask(id_of(1), "unmerge", data)
    await world.settle()
    await merged(world, 3, 1)
    world.ask(id_of(1), "unmerge", data, command)
    await world.settle()
    assert world.issue(1).merged_into == id_of(3)
    assert sums(world.issue(3)) == (6, 6, {RELEASE: 6})


async def test_a_change_that_was_passed_on_is_not_made_to_the_part_when_it_comes_again() -> None:
    world = await with_issues(1, 2)
    await merged(world, 1, 2)
    command = world.ask(id_of(2), "update", {"assignee": "bob"})
    await world.settle()
    await unmerged(world, 1, 2)
    world.ask(id_of(2), "update", {"assignee": "bob"}, command)
    await world.settle()
    assert (world.issue(1).assignee, world.issue(2).assignee) == ("bob", None)


async def test_a_refusal_of_an_earlier_merge_does_not_end_the_request_of_a_later_one() -> None:
    world = await with_issues(1, 2)
    world.ask(id_of(1), "merge", {"issues": [id_of(2)]})
    refused = Signal(kind="refused", issue=id_of(1), sender=id_of(2), project_id=str(PROJECT), join="earlier")
    world.put(int(id_of(1), 16) % PARTITIONS, DeltaRecord(signal=refused))
    await world.settle()
    assert (world.issue(1).events, world.issue(2).merged_into) == (3, id_of(1))


async def test_an_issue_whose_merge_nothing_waits_for_keeps_its_members() -> None:
    world = await with_issues(1, 2, 3)
    await merged(world, 2, 3)
    join = Signal(
        kind="join", issue=id_of(2), sender=id_of(1), project_id=str(PROJECT), join="c", at=iso(START), room=9
    )
    world.put(int(id_of(2), 16) % PARTITIONS, DeltaRecord(signal=join))
    # An event of the member meanwhile.
    await world.work(1)
    await events(world, 3, 1, first_user=9)
    assert (world.issue(2).merged_into, world.issue(3).merged_into) == (None, id_of(2))
    assert world.issue(2).fingerprints == (hex64(2), hex64(3))
    assert (sums(world.issue(1))[0], sums(world.issue(2))[0]) == (1, 6)
    await unmerged(world, 2, 3)
    assert (sums(world.issue(2))[0], sums(world.issue(3))[0]) == (2, 4)


async def test_a_command_that_merges_a_part_into_two_issues_in_turn_tells_both() -> None:
    world = await with_issues(1, 2, 3)
    join = Signal(kind="join", issue=id_of(3), sender=id_of(1), project_id=str(PROJECT), join="c", room=9)
    reported = [
        activity.id
        for whole in (1, 2)
        for activity in apply_signal(world.issue(3), replace(join, sender=id_of(whole))).activities
    ]
    assert len(set(reported)) == 2


async def test_an_issue_that_is_not_there_is_refused_and_nothing_is_waited_for() -> None:
    world = await with_issues(1)
    issue = await merged(world, 1, 9)
    assert (issue.events, issue.life.members, issue.life.pending) == (1, {}, {})


async def test_an_issue_takes_no_more_than_its_record_can_hold() -> None:
    world = await with_issues(1, 2)
    await merged(world, 1, *range(1000, 1099))
    for kind in range(100):
        world.send(3000 + kind, increment(3000 + kind))
    await world.settle()
    await merged(world, 2, *range(3000, 3060))
    await merged(world, 1, *range(3060, 3100))
    issue = await merged(world, 1, 2)
    assert len(issue.life.members) == 40
    assert world.issue(2).merged_into is None
    assert world.issue(2).events == 62


async def aliased(world: World, into: int, *fingerprints: int) -> IssueRecord:
    world.ask(id_of(into), "merge", {"fingerprints": [hex64(f) for f in fingerprints]})
    await world.settle()
    return world.issue(into)


async def test_a_fingerprint_can_be_merged_before_its_first_event() -> None:
    world = await with_issues(1)
    before = world.issue(1)
    issue = await aliased(world, 1, 9)
    assert issue.fingerprints == (hex64(1), hex64(9))
    for field in (
        "events", "users", "first_seen_ms", "last_seen_ms", "error_type", "message", "culprit", "releases", "last_event"
    ):  # fmt: skip
        assert getattr(issue, field) == getattr(before, field), field
    await events(world, 9, 2)
    assert sums(world.issue(1)) == (3, 3, {RELEASE: 3})
    assert world.issue(1).last_seen_ms == START + 9
    assert (world.issue(9).merged_into, world.issue(9).first_seen_ms) == (id_of(1), START + 9)
    assert [one.issue for one in world.activities("created")] == [id_of(1)]


async def test_a_fingerprint_without_events_can_be_unmerged_once_it_has_some() -> None:
    world = await with_issues(1)
    await aliased(world, 1, 9)
    assert (await unmerged(world, 1, 9)).fingerprints == (hex64(1), hex64(9))
    assert world.dead_letter_messages() == [
        "none of these fingerprints is merged into the issue and has events"
    ]
    await events(world, 9, 2)
    await unmerged(world, 1, 9)
    issue = world.issue(9)
    assert (sums(issue), issue.merged_into, issue.first_seen_ms) == ((2, 2, {RELEASE: 2}), None, START + 9)
    assert (issue.error_type, issue.last_seen_ms) == ("E", START + 9)
    assert sums(world.issue(1)) == (1, 1, {RELEASE: 1})
    assert not world.activities("seenInRelease", "seenInEnvironment")


async def test_a_part_whose_first_event_comes_after_the_merge_has_no_owner() -> None:
    world = await with_issues(1)
    await aliased(world, 1, 9)
    world.send(9, increment(9, owner="zoe"))
    await world.settle()
    issue = await unmerged(world, 1, 9)
    assert (issue.assignee, world.issue(1).assignee) == (None, None)
    assert not world.activities("assigned")


async def test_a_named_fingerprint_counts_among_the_issues_that_can_be_merged() -> None:
    world = await with_issues(1)
    await aliased(world, 1, *range(100, 200))
    assert len(world.issue(1).fingerprints) == 101
    await aliased(world, 1, 300)
    assert len(world.issue(1).fingerprints) == 101
    assert world.dead_letter_messages() == ["at most 100 issues can be merged into one"]


async def test_a_request_that_names_the_fingerprint_of_another_issue_opens_nothing() -> None:
    world = await with_issues(1)
    join = Signal(
        kind="join",
        issue=id_of(9),
        sender=id_of(1),
        project_id=str(PROJECT),
        join="j" * 36,
        by="ann",
        at=iso(START),
        fingerprint=hex64(8),
        room=100,
    )
    world.put(int(id_of(9), 16) % PARTITIONS, DeltaRecord(signal=join))
    await world.settle()
    await events(world, 9, 1)
    assert world.issue(9).merged_into is None
    unknown = replace(join, issue=id_of(7), fingerprint=hex64(7))
    for bad in ({"project_id": "x"}, {"at": "now"}, {"fingerprint": "?"}):
        world.put(int(id_of(7), 16) % PARTITIONS, DeltaRecord(signal=replace(unknown, **bad)))
    await world.settle()
    assert len(world.dead_letter_messages()) == 3
