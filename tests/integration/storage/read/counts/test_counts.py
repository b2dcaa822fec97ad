"""Series, facets, completion, releases and outcomes against the same answer computed from a list of events."""

from collections import Counter
from datetime import timedelta

import pytest
from msgspec.structs import replace

from schemas.ids import hex64, issue_id
from schemas.read_api import (
    Interval,
    OutcomeExample,
    Release,
    RevokedTokenCount,
    RuleSkipped,
)
from schemas.times import DAY_MS, HOUR_MS, MINUTE_MS, from_ms, iso
from storage.client import Client
from storage.errors import BadQuery
from storage.read.counts.completion import CompleteField, CompleteKey, CompleteTag
from storage.read.counts.count_calls import (
    CountOutcomes,
    GetIssueStats,
    GetIssueWithStats,
    GetProjectStats,
    ListReleases,
    ListRevokedTokens,
    ListSkippedRules,
)
from storage.read.counts.tag_calls import CountIssueTags, CountProjectTags
from storage.read.issues.issue_calls import GetIssue
from storage.read.reader import Reader
from tests.integration.storage.read.questions import RANGES, bounds, pages
from tests.integration.storage.read.world import (
    MERGED,
    NOW_MS,
    World,
    distinct_users,
)


@pytest.mark.parametrize("query", ["", "feature:cart", "environment:prod", "is:open", "is:open OR user:u1"])
@pytest.mark.parametrize("interval", ["minute", "hour", "day"])
@pytest.mark.holds("contract 4 stats")
async def test_series_count_each_interval_and_leave_none_out(
    reader: Reader, world: World, query: str, interval: Interval
) -> None:
    size = {"minute": 60_000, "hour": HOUR_MS, "day": DAY_MS}[interval]
    for start, end in RANGES[:6]:
        first, last = bounds(start, end)
        if ((last or NOW_MS) - first) // size > 2000:
            continue
        for issue in (None, issue_id(world.project, MERGED[0])):
            events = [
                event
                for event in world.found(query, first, last)
                if issue in (None, world.issue_of(event.fingerprint))
            ]
            series = await (
                reader.read(GetProjectStats(world.project, query, interval=interval, start=start, end=end))
                if issue is None
                else reader.read(GetIssueStats(hex64(issue), query, interval=interval, start=start, end=end))
            )
            if issue is not None:
                whole = GetIssueWithStats(hex64(issue), query, interval=interval, start=start, end=end)
                counted = await reader.read(GetIssue(hex64(issue), query, start=start, end=end))
                assert await reader.read(whole) == (replace(counted, trend=[]), series)
            final = NOW_MS if last is None else last - 1
            for at, point in zip(range(first // size * size, final + 1, size), series.series, strict=True):
                inside = [event for event in events if event.view.timestamp // size * size == at]
                assert (point.time, point.events, point.users) == (
                    iso(at),
                    len(inside),
                    distinct_users(inside),
                )


@pytest.mark.parametrize("query", ["environment:prod", "feature:[cart, search]", "is:open"])
async def test_facets_have_the_most_frequent_values_of_each_tag(
    reader: Reader, world: World, query: str
) -> None:
    start, end = RANGES[1]
    events = world.found(query, *bounds(start, end))
    facets = await reader.read(CountProjectTags(world.project, query, start=start, end=end))
    assert (facets.sampled, facets.sample_events) == (False, len(events))
    keys = Counter(key for event in events for key in event.view.tags)
    assert {facet.key for facet in facets.tags} == set(keys)
    for facet in facets.tags:
        values = Counter(event.view.tags[facet.key] for event in events if facet.key in event.view.tags)
        expected = sorted(values.items(), key=lambda pair: (-pair[1], pair[0]))
        assert facet.distinct == len(values)
        assert [(value.value, value.events) for value in facet.values] == expected[:10]


async def test_facets_of_a_project_without_a_query_are_of_whole_days(reader: Reader, world: World) -> None:
    start, end = NOW_MS - 5 * DAY_MS, NOW_MS - DAY_MS - 1
    events = world.found("", start // DAY_MS * DAY_MS, (end // DAY_MS + 1) * DAY_MS)
    facets = await reader.read(CountProjectTags(world.project, start=start, end=end))
    features = next(facet for facet in facets.tags if facet.key == "feature")
    assert {value.value: value.events for value in features.values} == Counter(
        event.view.tags["feature"] for event in events
    )


async def test_facets_of_an_issue_are_of_all_its_events(reader: Reader, world: World) -> None:
    number = issue_id(world.project, MERGED[0])
    events = world.by_issue(world.found("", 0, None))[number]
    facets = await reader.read(CountIssueTags(hex64(number)))
    features = next(facet for facet in facets.tags if facet.key == "feature")
    assert {value.value: value.events for value in features.values} == Counter(
        event.view.tags["feature"] for event in events
    )


async def test_facets_of_very_many_events_are_of_the_newest_and_say_so(
    reader: Reader, database: Client, project: int
) -> None:
    database.command(
        "INSERT INTO ingest (project_id, fingerprint, ts, id, tags, retention_days, payload_days)"
        " SELECT {project:UInt32}, 1, toDateTime64({now:Int64} / 1000, 3, 'UTC') - toIntervalSecond(number % 86400),"
        " number, map('age', if(number % 86400 < 6000, 'new', 'old')), 90, 90 FROM numbers(86400)",
        parameters={"project": project, "now": NOW_MS},
    )
    database.insert(
        "issues",
        [[project, project, [1], from_ms(NOW_MS - DAY_MS), from_ms(NOW_MS), 1]],
        column_names=["project_id", "issue_id", "fingerprints", "first_seen", "last_seen", "version"],
    )
    facets = await reader.read(CountIssueTags(hex64(project)))
    assert (facets.sampled, facets.sample_events) == (True, 10_000)
    assert [(value.value, value.events) for value in facets.tags[0].values] == [
        ("new", 6_000),
        ("old", 4_000),
    ]


async def test_completion_knows_keys_values_and_fields(reader: Reader, world: World) -> None:
    keys = (await reader.read(CompleteKey(world.project))).keys
    assert {"is", "environment", "timestamp", "feature", "n", 'tags["it\'s"]'} <= set(keys)
    assert (await reader.read(CompleteKey(world.project, "fea"))).keys == ["feature"]
    values = await reader.read(CompleteTag(world.project, "feature", "c"))
    assert {value.value for value in values.values} == {"cart", "checkout"}
    releases = await reader.read(CompleteField(world.project, "release", "shop@"))
    assert len(releases.values) == 4
    assert [
        value.value for value in (await reader.read(CompleteField(world.project, "type", "T"))).values
    ] == ["TypeError"]


@pytest.mark.holds("contract 4 releases")
async def test_releases_have_their_counts_and_new_issues(
    reader: Reader, database: Client, world: World
) -> None:
    database.insert(
        "issue_activity",
        [
            [world.project, 1, from_ms(NOW_MS), "r1", "regressed", "", '{"release":"shop@1.2.0+1"}'],
            [world.project, 1, from_ms(NOW_MS), "r1", "regressed", "", '{"release":"shop@1.2.0+1"}'],
            [world.project, 2, from_ms(NOW_MS), "r2", "resolved", "", '{"release":"shop@1.2.0+1"}'],
        ],
        column_names=["project_id", "issue_id", "at", "id", "kind", "by", "data"],
    )
    found = {
        release.release: release for release in (await reader.read(ListReleases(world.project))).releases
    }
    for name, release in found.items():
        times = [event.view.timestamp for event in world.events if event.view.release == name]
        assert release.events == len(times)
        assert (release.first_seen, release.last_seen) == (iso(min(times)), iso(max(times)))
    new = Counter(life.first_release for life in world.issues.values())
    assert {name: release.new_issues for name, release in found.items() if release.new_issues} == new
    assert {name: release.regressions for name, release in found.items() if release.regressions} == {
        "shop@1.2.0+1": 1
    }


async def test_releases_page_from_the_newest_to_the_oldest_while_events_arrive(
    reader: Reader, database: Client, world: World
) -> None:
    whole = (await reader.read(ListReleases(world.project, limit=500))).releases
    assert len(whole) > 2
    assert [one.first_seen for one in whole] == sorted((one.first_seen for one in whole), reverse=True)
    paged: list[Release] = []
    async for page in pages(reader, ListReleases(world.project, limit=1)):
        paged += page.releases
        # The last one is in use all the while, so that its last event is always the newest.
        database.command(
            "INSERT INTO issue_day_er (project_id, day, fingerprint, release, retention_days, n, first, last)"
            f" SELECT {world.project}, today(), 1, '{whole[-1].release}', 90, 0, now64(3), now64(3)"
        )
    assert [one.release for one in paged] == [one.release for one in whole]
    with pytest.raises(BadQuery):
        await reader.read(ListReleases(world.project, cursor="AAAA"))


async def test_outcomes_are_summed_once_by_interval_without_those_of_no_event(
    reader: Reader, database: Client, project: int
) -> None:
    minute = from_ms(NOW_MS // HOUR_MS * HOUR_MS - HOUR_MS)
    rows = [
        [project, minute, "js/1", "accepted", "", "edge-1", 1, 10],
        [project, minute, "js/1", "accepted", "", "edge-1", 1, 10],
        [project, minute, "js/1", "accepted", "", "edge-2", 1, 5],
        [project, minute, "js/1", "invalid", "tags", "edge-1", 2, 1],
        [project, minute, "", "ruleSkipped", "tooExpensive/a/b", "grouper/1", 7, 3],
        [project, minute, "", "ruleSkipped", "tooExpensive/a/b", "grouper/1", 7, 3],
        [project, minute, "", "ruleSkipped", "tooExpensive/a/b", "grouper/1", 8, 2],
        [project, minute, "", "ruleSkipped", "failed/c", "grouper/1", 8, 1],
        [project, minute - timedelta(days=15), "", "ruleSkipped", "failed/c", "grouper/1", 1, 9],
        [project, minute, "js/1", "revokedToken", "k3x9", "edge-1", 6, 2],
        [project, minute - timedelta(hours=2), "js/1", "revokedToken", "k3x9", "edge-1", 7, 3],
    ]
    names = ["project_id", "minute", "sdk", "outcome", "reason", "source", "sequence", "count"]
    database.insert("outcomes", rows, column_names=names)
    found = [
        (row.time, row.outcome, row.count) for row in (await reader.read(CountOutcomes(project))).outcomes
    ]
    assert found == [(None, "accepted", 15), (None, "invalid", 1)]
    assert await reader.read(ListSkippedRules(project)) == [
        RuleSkipped("c", "failed", 1),
        RuleSkipped("a/b", "tooExpensive", 5),
    ]
    [used] = await reader.read(ListRevokedTokens(project))
    assert used == RevokedTokenCount("k3x9", "js/1", 5, iso(NOW_MS // HOUR_MS * HOUR_MS - HOUR_MS))
    by_hour = (await reader.read(CountOutcomes(project, interval="hour"))).outcomes
    assert [(row.time, row.count) for row in by_hour] == [
        (iso(NOW_MS // HOUR_MS * HOUR_MS - HOUR_MS), 15),
        (iso(NOW_MS // HOUR_MS * HOUR_MS - HOUR_MS), 1),
    ]


async def test_a_reason_has_its_newest_example(reader: Reader, database: Client, project: int) -> None:
    hour = NOW_MS // HOUR_MS * HOUR_MS - HOUR_MS
    minutes = [from_ms(hour + number * MINUTE_MS) for number in range(3)]
    rows = [
        [project, minutes[0], "js/1", "invalid", "tags", "edge-1", 1, 1, "tags: older"],
        [project, minutes[1], "js/1", "invalid", "tags", "edge-1", 2, 1, "tags: newer"],
        [project, minutes[2], "js/1", "invalid", "tags", "edge-1", 3, 1, ""],
        [project, minutes[2], "js/2", "invalid", "tags", "edge-1", 4, 1, ""],
    ]
    names = ["project_id", "minute", "sdk", "outcome", "reason", "source", "sequence", "count", "example"]
    database.insert("outcomes", rows, column_names=names)
    found = (await reader.read(CountOutcomes(project))).outcomes
    assert [(row.sdk, row.count, row.example) for row in found] == [
        ("js/1", 3, OutcomeExample(iso(hour + MINUTE_MS), "tags: newer")),
        ("js/2", 1, None),
    ]
    by_hour = (await reader.read(CountOutcomes(project, interval="hour"))).outcomes
    assert [(row.count, row.example) for row in by_hour] == [(3, None), (1, None)]
