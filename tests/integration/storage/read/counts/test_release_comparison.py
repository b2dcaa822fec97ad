"""The comparison of two releases equals a count of their events."""

from collections import Counter

import pytest

from schemas.ids import hex64
from storage.read.counts.count_calls import ListReleases
from storage.read.counts.release_comparison import CompareReleases, verdict
from storage.read.reader import Reader
from tests.integration.storage.read.world import World

RELEASES = ("shop@1.0.0+1", "shop@1.1.0+1", "shop@1.2.0+1")


@pytest.mark.parametrize("before", RELEASES)
@pytest.mark.parametrize("after", RELEASES)
async def test_each_issue_has_its_events_in_both(
    reader: Reader, world: World, before: str, after: str
) -> None:
    found = await reader.read(CompareReleases(world.project, before, after))
    counts = {
        name: Counter(
            hex64(world.issue_of(event.fingerprint)) for event in world.events if event.view.release == name
        )
        for name in (before, after)
    }
    assert (found.before, found.after) == (counts[before].total(), counts[after].total())
    assert found.before > 0
    assert {issue.id: (issue.before, issue.after) for issue in found.issues} == {
        issue: (counts[before][issue], counts[after][issue]) for issue in counts[before] | counts[after]
    }
    sizes = [issue.before + issue.after for issue in found.issues]
    assert sizes == sorted(sizes, reverse=True)
    for issue in found.issues:
        assert issue.verdict == verdict(issue.before, issue.after, found.before, found.after)


async def test_the_newest_release_is_compared_with_the_one_before_it(reader: Reader, world: World) -> None:
    newest = [release.release for release in (await reader.read(ListReleases(world.project))).releases]
    found = await reader.read(CompareReleases(world.project))
    assert (found.after_release, found.before_release) == tuple(newest[:2])
    assert found == await reader.read(CompareReleases(world.project, newest[1], newest[0]))


async def test_unknown_releases_have_no_counts(reader: Reader, world: World) -> None:
    found = await reader.read(CompareReleases(world.project, "a@1+1", "a@2+1"))
    assert (found.before, found.after, found.issues) == (0, 0, [])
