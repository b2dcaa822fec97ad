"""Answers from rollups that had counted too much and were repaired by rows with negative differences."""

import math
import secrets
from collections import Counter
from collections.abc import Iterator

import pytest

from schemas.ids import hex64
from schemas.read_api import Sort
from schemas.times import DAY_MS, HOUR_MS
from storage.client import Client
from storage.exactly_once.repair_rollups import repair_rollups
from storage.read.counts.completion import CompleteField, CompleteKey, CompleteTag
from storage.read.counts.count_calls import GetProjectStats, ListReleases
from storage.read.counts.tag_calls import CountProjectTags
from storage.read.issues.issue_calls import GetIssue
from storage.read.issues.issue_list import ListIssues
from storage.read.query.ranges import resolve_range
from storage.read.reader import Reader
from storage.tables.rollups import ROLLUPS
from tests.integration.storage.read.questions import pages
from tests.integration.storage.read.world import NOW_MS, World, insert, make
from tests.long_forms import first_quick

_TOO_MANY = (
    *(f"INSERT INTO {rollup.table} SELECT * FROM {rollup.table}" for rollup in ROLLUPS),
    "INSERT INTO tag_day SELECT * REPLACE ('spook' AS k) FROM tag_day",
    "INSERT INTO tag_day SELECT * REPLACE ('chess' AS v) FROM tag_day",
    "INSERT INTO issue_day_er SELECT * REPLACE ('shop@9.0.0+1' AS release) FROM issue_day_er",
)


@pytest.fixture(scope="module")
def repaired(database: Client) -> Iterator[World]:
    """A project whose rollups counted everything twice, and keys that no event has, until they were repaired."""
    for rollup in ROLLUPS:
        database.command(f"SYSTEM STOP MERGES {rollup.table}")
    world = make(secrets.randbelow(1 << 31) + 1, many=200)
    insert(database, world)
    for statement in _TOO_MANY:
        database.command(f"{statement} WHERE project_id = {world.project}")
    days = database.query(
        f"SELECT DISTINCT project_id, toDate(ts) FROM events WHERE project_id = {world.project}"
    ).result_rows
    assert all(repair_rollups(database, [(int(project), day) for project, day in days]).values())
    yield world
    for rollup in ROLLUPS:
        database.command(f"SYSTEM START MERGES {rollup.table}")


@pytest.mark.parametrize("start", first_quick([NOW_MS - 20 * HOUR_MS, None, NOW_MS - 9 * DAY_MS - 12_345]))
@pytest.mark.parametrize("query", ["", "environment:prod", "is:[open, resolved, ignored]"])
async def test_issues_have_the_figures_of_their_events(
    reader: Reader, repaired: World, query: str, start: int | None
) -> None:
    span = resolve_range(start, None, NOW_MS)
    found = repaired.by_issue(repaired.found(query, span.start, None))
    trends = repaired.trends(query, start, None)
    sorts: tuple[Sort, ...] = ("lastSeen", "events", "trend")
    for sort in sorts:
        page = await reader.read(ListIssues(repaired.project, query, start=start, sort=sort, limit=500))
        assert {issue.id for issue in page.issues} == {hex64(number) for number in found}
        for issue in page.issues:
            number = int(issue.id, 16)
            events = found[number]
            assert (issue.events, issue.users) == (len(events), repaired.users(number, events))
            assert issue.trend == trends[issue.id]
    # The last page is in the order of trends.
    scores = [_surprise(issue.trend) for issue in page.issues]
    assert scores == sorted(scores, reverse=True)
    for issue in page.issues:
        assert issue == await reader.read(GetIssue(issue.id, query, start=start))


def _surprise(trend: list[int]) -> int:
    older, newer = sum(trend[: len(trend) // 2]), sum(trend[len(trend) // 2 :])
    return round(1000 * (newer - older) / math.sqrt(max(1, older + newer)))


async def test_values_without_events_are_neither_listed_nor_counted(reader: Reader, repaired: World) -> None:
    events = repaired.found("", NOW_MS // DAY_MS * DAY_MS - 14 * DAY_MS, None)
    tags = (await reader.read(CountProjectTags(repaired.project))).tags
    assert {facet.key for facet in tags} == {key for event in events for key in event.view.tags}
    features = next(facet for facet in tags if facet.key == "feature")
    counted = Counter(event.view.tags["feature"] for event in events)
    assert (features.distinct, {one.value: one.events for one in features.values}) == (3, counted)
    values = (await reader.read(CompleteTag(repaired.project, "feature", "ch"))).values
    assert [(one.value, one.events) for one in values] == [("checkout", counted["checkout"])]
    assert (await reader.read(CompleteKey(repaired.project, "spo"))).keys == []
    assert (await reader.read(CompleteField(repaired.project, "release", "shop@9"))).values == []


async def test_releases_without_an_event_are_left_out_of_every_page(reader: Reader, repaired: World) -> None:
    wanted = Counter(event.view.release for event in repaired.events)
    found = {
        one.release: one.events
        async for page in pages(reader, ListReleases(repaired.project, limit=1))
        for one in page.releases
    }
    assert found == wanted


async def test_a_series_counts_the_events(reader: Reader, repaired: World) -> None:
    series = await reader.read(GetProjectStats(repaired.project, interval="day", start=NOW_MS - 9 * DAY_MS))
    assert sum(point.events for point in series.series) == len(repaired.found("", NOW_MS - 9 * DAY_MS, None))
