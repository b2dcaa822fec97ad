"""The read API over ClickHouse answers as the evaluator of queries does, event by event."""

from collections import Counter
from itertools import cycle, product
from typing import Any

import pytest

from schemas.ids import hex64
from schemas.times import HOUR_MS, iso
from tests.integration.dashboard.api import Api
from tests.integration.dashboard.history import MERGED, NOW_MS, why

QUERIES = [
    "",
    "environment:staging",
    "tier:pro -environment:prod",
    "größe TypeError",
    "is:open",
    "is:regressed OR n:3",
    "has:user events:>5",
    "assignee:zoe",
    "-assignee:[zoe, bob*] tier:pro",
    "has:assignee OR n:3",
    'assignee:"" environment:prod',
    'tags["it\'s"]:"a\\"b\\\\c"',
    "firstSeen:<-2d",
    "release:shop@1.1.*",
    "file:src/checkout.ts",
    "nothing-like-this",
]
SORTS = ("lastSeen", "firstSeen", "events", "users")
RANGES: list[dict[str, str]] = [
    {},
    {"start": iso(NOW_MS - 30 * HOUR_MS)},
    {"start": iso(NOW_MS - 9 * 24 * HOUR_MS - 12_345), "end": iso(NOW_MS - 3 * HOUR_MS - 1)},
]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.holds("contract 4 issues", "contract 4 language")
async def test_issues_of_a_query(api: Api, query: str) -> None:
    index = QUERIES.index(query)
    for turn, span in enumerate(RANGES, index):  # over all queries, each range is asked in each order
        sort = SORTS[turn % len(SORTS)]
        found = await api.ask(f"{api.project}/issues", query=query, sort=sort, limit=500, **span)
        expected = api.history.matching(query, **span)
        events = Counter(hex64(api.history.issue(one.fingerprint)) for one in expected)
        assert {issue["id"]: issue["events"] for issue in found["issues"]} == events
        assert {issue["id"]: issue["users"] for issue in found["issues"]} == {
            issue: len(
                {
                    one.view.user
                    for one in expected
                    if one.view.user and hex64(api.history.issue(one.fingerprint)) == issue
                }
            )
            for issue in events
        }
    assert bool(api.history.matching(query)) == (query != "nothing-like-this")


@pytest.mark.holds("contract 4 issue")
async def test_an_issue_and_what_counts_in_a_range(api: Api) -> None:
    for fingerprint in api.history.lives():
        for span in RANGES:
            issue = await api.ask(api.issue(fingerprint), **span)
            assert issue["totalEvents"] == len(api.history.lives()[fingerprint])
        activity = (await api.ask(f"{api.issue(fingerprint)}/activity"))["activity"]
        times = [change["at"] for change in activity]
        assert times == sorted(times, reverse=True)


@pytest.mark.parametrize(
    "query", ["is:resolved", "-is:resolved tier:pro", "events:>12 environment:prod", "is:open OR tier:pro"]
)
@pytest.mark.holds("contract 4 Issue")
async def test_an_issue_is_counted_where_it_is_what_the_query_asks_of_issues(api: Api, query: str) -> None:
    for fingerprint, span in zip(api.history.lives(), cycle(RANGES), strict=False):
        issue = await api.ask(api.issue(fingerprint), query=query, **span)
        stats = await api.ask(f"{api.issue(fingerprint)}/stats", query=query, interval="hour", **span)
        assert issue["events"] == sum(point["events"] for point in stats["series"])
        assert issue["events"] <= issue["totalEvents"] > 0


@pytest.mark.holds("contract 4 merge")
async def test_what_happened_to_merged_issues_reads_as_one(api: Api) -> None:
    for part, whole in MERGED.items():
        activity = await api.ask(f"{api.issue(whole)}/activity")
        assert activity == await api.ask(f"{api.issue(part)}/activity")
        changed = {(change["issueId"], change["kind"]) for change in activity["activity"]}
        assert changed == {
            (hex64(api.history.issue(one)), kind)
            for one in (part, whole)
            for kind in ("created", "resolved", "regressed")
        } | {(hex64(api.history.issue(whole)), "merged")}
        issue = await api.ask(api.issue(part))
        assert issue["id"] == hex64(api.history.issue(whole))
        assert issue["fingerprints"] == [hex64(whole), hex64(part)]
        found = await api.ask(f"{api.issue(part)}/events", limit=500)
        assert len(found["events"]) == issue["totalEvents"] == len(api.history.lives()[whole])


@pytest.mark.holds("contract 4")
async def test_pages_of_issues_and_events_hold_each_once(api: Api) -> None:
    for path, key in ((f"{api.project}/issues", "issues"), (f"{api.project}/events", "events")):
        seen: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            page = await api.ask(path, limit=7, **cursor)
            assert len(page[key]) <= 7
            seen += [one["id"] for one in page[key]]
            if page["nextCursor"] is None:
                break
            cursor = {"cursor": page["nextCursor"]}
        assert len(seen) == len(set(seen))
        expected = len(api.history.lives()) if key == "issues" else len(api.history.events)
        assert len(seen) == expected


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.holds("contract 4 events")
async def test_events_of_a_query(api: Api, query: str) -> None:
    for span in RANGES:
        expected = api.history.matching(query, **span)[::-1]
        found = await api.ask(f"{api.project}/events", query=query, limit=500, **span)
        assert [row["id"] for row in found["events"]] == [one.event["id"] for one in expected]
        # An issue's events are those of its whole life, where no range is asked for.
        expected = api.history.matching(query, **({"start": iso(0)} | span))[::-1]
        found = await api.ask(f"{api.issue(100)}/events", query=query, limit=500, **span)
        assert [row["id"] for row in found["events"]] == [
            one.event["id"] for one in expected if one.fingerprint == 100
        ]


@pytest.mark.holds("contract 4 events")
async def test_an_event_between_its_neighbours(api: Api) -> None:
    life = api.history.lives()[100]
    for number, sent in enumerate(life):
        detail = await api.ask(f"{api.issue(100)}/events/{sent['id']}")
        assert detail["event"] == sent
        assert detail["previousEventId"] == (life[number - 1]["id"] if number else None)
        assert detail["nextEventId"] == (life[number + 1]["id"] if number + 1 < len(life) else None)
        assert detail["grouping"] == {"version": "1", "rule": "stack", "parts": ["Error", "run in src/a.js"]}
    latest = await api.ask(f"{api.issue(100)}/events/latest")
    assert latest["event"]["id"] == life[-1]["id"]
    oldest = await api.ask(f"{api.issue(100)}/events/oldest")
    assert oldest["event"]["id"] == life[0]["id"]
    newest = await api.ask(f"{api.project}/events/latest")
    assert newest["event"] == api.history.matching("")[-1].event
    assert (await api.ask(f"{api.project}/events/{life[0]['id'].upper()}"))["event"] == life[0]


async def test_an_event_of_a_merged_issue_says_what_grouped_it_and_who_merged_it(api: Api) -> None:
    for part, whole in MERGED.items():
        for event, fingerprint in api.history.events:
            if fingerprint not in (part, whole):
                continue
            for scope in (api.issue(whole), api.project):
                detail = await api.ask(f"{scope}/events/{event['id']}")
                if detail.get("error") == "damagedPayload":
                    continue
                assert detail["grouping"]["parts"] == why(fingerprint).parts
                assert (detail["merged"] or {}).get("by") == ("admin" if fingerprint == part else None)
                assert detail["issueId"] == hex64(api.history.issue(whole))


@pytest.mark.holds("contract 4 tags")
async def test_tags_and_completion(api: Api) -> None:
    for query in QUERIES:
        expected = api.history.matching(query)
        values = Counter((key, value) for one in expected for key, value in one.view.tags.items())
        for facet in (await api.ask(f"{api.project}/tags", query=query))["tags"]:
            assert facet["distinct"] == len({value for key, value in values if key == facet["key"]})
            for one in facet["values"]:
                assert one["events"] == values[facet["key"], one["value"]]
    values = await api.ask(f"{api.project}/tags/tier/values", prefix="p")
    assert [value["value"] for value in values["values"]] == ["pro"]
    assert (await api.ask(f"{api.project}/tags/nothing/values"))["values"] == []


@pytest.mark.holds("contract 4 language")
async def test_a_key_that_no_event_has_is_named_with_the_nearest_on_every_call(api: Api) -> None:
    for path in (
        f"{api.project}/issues",
        api.issue(100),
        f"{api.issue(100)}/events",
        f"{api.project}/events",
        f"{api.project}/tags",
        f"{api.issue(100)}/tags",
        f"{api.project}/stats",
        f"{api.issue(100)}/stats",
    ):
        answer = await api.ask(path, query="assigned:me tier:pro OR has:tear", interval="day")
        assert [one["key"] for one in answer["warnings"]] == ["assigned", "tear"], path
        assert [one["nearest"][0] for one in answer["warnings"]] == ["assignee", "tier"]
        assert (await api.ask(path, query="tier:pro", interval="day"))["warnings"] == []
    body = {"rules": [{"name": "r", "match": "x", "discard": True}]}
    tested = await api.post(f"{api.project}/grouping-rules:test?query=assigned:me", body)
    assert [one["key"] for one in tested["warnings"]] == ["assigned"]


@pytest.mark.holds("contract 4 stats")
async def test_counts_over_time(api: Api) -> None:
    for (query, span), interval in zip(product(QUERIES, RANGES), cycle(["hour", "day"]), strict=False):
        series = await api.ask(f"{api.project}/stats", query=query, interval=interval, **span)
        issue = await api.ask(f"{api.issue(102)}/stats", query=query, interval=interval, **span)
        expected = api.history.matching(query, **span)
        assert sum(point["events"] for point in series["series"]) == len(expected)
        assert sum(point["events"] for point in issue["series"]) == sum(
            one.fingerprint == 102 for one in expected
        )
        assert len(series["series"]) == len(issue["series"])


async def test_releases_and_outcomes(api: Api) -> None:
    releases = await api.ask(f"{api.project}/releases")
    assert sum(release["events"] for release in releases["releases"]) == len(api.history.events)
    paged: list[Any] = []
    cursor: str | None = ""
    for _ in releases["releases"]:
        page = await api.ask(f"{api.project}/releases", limit=1, **({"cursor": cursor} if cursor else {}))
        paged += page["releases"]
        cursor = page["nextCursor"]
    assert (paged, cursor) == (releases["releases"], None)
    for span in RANGES:
        whole = (await api.ask(f"{api.project}/outcomes", **span))["outcomes"]
        by_day = (await api.ask(f"{api.project}/outcomes", interval="day", **span))["outcomes"]
        assert sum(one["count"] for one in whole) == sum(one["count"] for one in by_day) > 0


@pytest.mark.parametrize(
    "path",
    [
        "/issues/00000000000000ff",
        "/issues/00000000000000ff/events",
        "/issues/00000000000000ff/events/latest",
        "/issues/00000000000000ff/tags",
        "/issues/00000000000000ff/stats",
        "/issues/00000000000000ff/activity",
    ],
)
async def test_unknown_issue_is_the_same_error(api: Api, path: str) -> None:
    assert await api.ask(path) == {"error": "notFound"}


@pytest.mark.parametrize(
    "query",
    [
        {"query": "a AND"},
        {"query": "is:broken"},
        {"query": "events:>many"},
        {"cursor": "x"},
        {"start": "2026-02-01T00:00:00Z", "end": "2026-01-01T00:00:00Z"},
    ],
)
async def test_bad_question_is_the_same_error(api: Api, query: dict[str, str]) -> None:
    answer = await api.ask(f"{api.project}/issues", **query)
    assert answer["error"] == "validationFailed"
