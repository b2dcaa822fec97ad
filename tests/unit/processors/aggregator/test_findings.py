"""Findings in events, through the real aggregator: each once, and for merged issues together."""

from msgspec.structs import replace

from processors.aggregator.findings import MAX_NAMES, milestone
from schemas.ids import hex64
from schemas.times import HOUR_MS
from tests.unit.processors.aggregator.world import START, World, id_of, increment


def found(world: World, *kinds: str) -> list[tuple[str, object]]:
    """The kinds and values of findings, of one kind or of all."""
    every = ("seenInRelease", "seenInEnvironment", "usersReached", "escalated")
    return [(one.kind, next(iter(one.data.values()))) for one in world.activities(*(kinds or every))]


async def merged() -> World:
    """Two issues, the second merged into the first."""
    world = World()
    for fingerprint in (1, 2):
        world.send(fingerprint, increment(fingerprint, f"app@{fingerprint}+1"))
    await world.settle()
    world.ask(id_of(1), "merge", {"issues": [id_of(2)]})
    await world.settle()
    return world


async def test_the_first_event_in_a_release_and_an_environment_is_found_once() -> None:
    world = World()
    world.send(
        1,
        increment(release="a@1+1"),
        increment(release="a@2+1"),
        increment(release="a@2+1", environment="test"),
    )
    world.send(
        1, increment(release="a@1+1", environment="test"), increment(release="a@3+1", environment="qa")
    )
    await world.settle()
    assert found(world) == [
        ("seenInRelease", "a@2+1"),
        ("seenInEnvironment", "test"),
        ("seenInRelease", "a@3+1"),
        ("seenInEnvironment", "qa"),
    ]
    assert len({one.id for one in world.activities()}) == 5


async def test_names_that_the_whole_has_seen_are_not_found_in_a_part() -> None:
    world = await merged()
    world.send(1, increment(1, "app@2+1"), increment(1, "app@3+1"))
    await world.settle()
    world.send(2, increment(2, "app@1+1"), increment(2, "app@3+1"), increment(2, "app@4+1", environment="qa"))
    await world.settle()
    assert found(world) == [
        ("seenInRelease", "app@3+1"),
        ("seenInRelease", "app@4+1"),
        ("seenInEnvironment", "qa"),
    ]
    assert {one.issue for one in world.activities("seenInRelease")} == {id_of(1)}


async def test_milestones_of_users_are_reached_once_each() -> None:
    world = World()
    for start in range(0, 60, 3):
        world.send(1, increment(users=range(start, start + 3)))
    world.send(1, increment(users=range(20)))
    await world.settle()
    assert found(world) == [("usersReached", 10), ("usersReached", 20), ("usersReached", 50)]
    assert [milestone(n) for n in (0, 9, 10, 199, 200, 10**9)] == [0, 0, 10, 100, 200, 5_000_000]


async def test_users_of_merged_issues_count_together_and_each_once() -> None:
    world = await merged()
    world.send(1, increment(1, "app@1+1", users=range(6)))
    world.send(2, increment(2, "app@2+1", users=range(6)))
    await world.settle()
    assert found(world) == []
    world.send(2, increment(2, "app@2+1", users=range(10)))
    await world.settle()
    assert found(world) == [("usersReached", 10)]
    world.send(1, increment(1, "app@1+1", users=range(10, 20)))
    await world.settle()
    assert found(world) == [("usersReached", 10), ("usersReached", 20)]


async def test_merged_issues_escalate_together() -> None:
    world = await merged()
    later = START + 2 * HOUR_MS
    world.send(2, increment(2, "app@2+1", 15, ms=later))
    await world.settle()
    assert found(world) == []
    world.send(1, increment(1, "app@1+1", 15, ms=later))
    await world.settle()
    assert found(world) == [("escalated", 30)]
    assert world.issue(1).escalated_ms == later
    world.send(2, increment(2, "app@2+1", 500, ms=later + HOUR_MS))
    await world.settle()
    assert found(world) == [("escalated", 30)]


async def test_an_unmerged_issue_is_judged_by_itself_again() -> None:
    world = await merged()
    world.ask(id_of(1), "unmerge", {"fingerprints": [hex64(2)]})
    await world.settle()
    world.send(2, increment(2, "app@1+1"))
    await world.settle()
    assert [(one.issue, one.data) for one in world.activities("seenInRelease")] == [
        (id_of(2), {"release": "app@1+1"})
    ]


async def test_a_full_record_finds_newer_releases_alone() -> None:
    world = World()
    world.send(1, *(increment(release=f"a@{n}+1") for n in range(MAX_NAMES + 5)))
    await world.settle()
    world.send(
        1, increment(release="a@3+1"), increment(release="other"), increment(release=f"a@{MAX_NAMES + 9}+1")
    )
    await world.settle()
    assert [value for _, value in found(world)] == [
        f"a@{n}+1" for n in (*range(1, MAX_NAMES + 5), MAX_NAMES + 9)
    ]


async def test_an_event_of_an_old_hour_escalates_nothing() -> None:
    world = World()
    late = replace(increment(events=5000, ms=START + 2 * HOUR_MS), received_ms=START + 9 * HOUR_MS)
    world.send(1, increment(), late)
    await world.settle()
    assert found(world) == []
