"""The read API over ClickHouse and over the fake: both give the same answers to the same questions."""

import re
from itertools import cycle, product
from typing import Any

import pytest

from schemas.ids import hex64
from schemas.times import iso
from tests.contract.dashboard.both import Both, Client
from tests.contract.dashboard.worlds import MERGED, NOW_MS, why
from tests.unit.dashboard.sample import HOUR_MS
from tests.unit.dashboard.site import PASSWORD

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
async def test_issues_of_a_query(both: Both, query: str) -> None:
    place = QUERIES.index(query)
    for turn, span in enumerate(RANGES, place):  # over all queries, each range is asked in each order
        await both.ask(f"{both.project}/issues", query=query, sort=SORTS[turn % len(SORTS)], **span)
    found = await both.ask(f"{both.project}/issues", query=query)
    assert bool(found["issues"]) == (query != "nothing-like-this")


@pytest.mark.holds("contract 4 issue")
async def test_an_issue_and_what_counts_in_a_range(both: Both) -> None:
    for fingerprint in both.history.lives():
        for span in RANGES:
            issue = await both.ask(both.issue(fingerprint), **span)
            assert issue["totalEvents"] == len(both.history.lives()[fingerprint])
        await both.ask(both.issue(fingerprint), query="tier:pro")
        await both.ask(f"{both.issue(fingerprint)}/activity")


@pytest.mark.parametrize(
    "query", ["is:resolved", "-is:resolved tier:pro", "events:>12 environment:prod", "is:open OR tier:pro"]
)
@pytest.mark.holds("contract 4 Issue")
async def test_an_issue_is_counted_where_it_is_what_the_query_asks_of_issues(both: Both, query: str) -> None:
    for fingerprint, span in zip(both.history.lives(), cycle(RANGES), strict=False):
        issue = await both.ask(both.issue(fingerprint), query=query, **span)
        stats = await both.ask(f"{both.issue(fingerprint)}/stats", query=query, interval="hour", **span)
        assert issue["events"] == sum(point["events"] for point in stats["series"])
        assert issue["events"] <= issue["totalEvents"] > 0


@pytest.mark.holds("contract 4 merge")
async def test_what_happened_to_merged_issues_reads_as_one(both: Both) -> None:
    for part, whole in MERGED.items():
        activity = await both.ask(f"{both.issue(whole)}/activity")
        assert activity == await both.ask(f"{both.issue(part)}/activity")
        changed = {(change["issueId"], change["kind"]) for change in activity["activity"]}
        assert changed == {
            (hex64(both.history.issue(one)), kind)
            for one in (part, whole)
            for kind in ("created", "resolved", "regressed")
        } | {(hex64(both.history.issue(whole)), "merged")}
        issue = await both.ask(both.issue(part))
        assert issue["id"] == hex64(both.history.issue(whole))
        assert issue["fingerprints"] == [hex64(whole), hex64(part)]
        found = await both.ask(f"{both.issue(part)}/events", limit=500)
        assert len(found["events"]) == issue["totalEvents"] == len(both.history.lives()[whole])


@pytest.mark.holds("contract 4")
async def test_pages_of_issues_and_events_hold_each_once(both: Both) -> None:
    for path, key in ((f"{both.project}/issues", "issues"), (f"{both.project}/events", "events")):
        for client in (both.fake, both.real):
            seen: list[str] = []
            cursor: dict[str, str] = {}
            while True:
                status, page = await both.one(client, path, {"limit": 7} | cursor)
                assert status == 200
                assert len(page[key]) <= 7
                seen += [one["id"] for one in page[key]]
                if page["nextCursor"] is None:
                    break
                cursor = {"cursor": page["nextCursor"]}
            assert len(seen) == len(set(seen))
            expected = len(both.history.lives()) if key == "issues" else len(both.history.events)
            assert len(seen) == expected


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.holds("contract 4 events")
async def test_events_of_a_query(both: Both, query: str) -> None:
    for span in RANGES:
        await both.ask(f"{both.project}/events", query=query, limit=500, **span)
        await both.ask(f"{both.issue(100)}/events", query=query, limit=500, **span)


@pytest.mark.holds("contract 4 events")
async def test_an_event_between_its_neighbours(both: Both) -> None:
    life = both.history.lives()[100]
    for number, sent in enumerate(life):
        detail = await both.ask(f"{both.issue(100)}/events/{sent['id']}")
        assert detail["event"] == sent
        assert detail["previousEventId"] == (life[number - 1]["id"] if number else None)
        assert detail["nextEventId"] == (life[number + 1]["id"] if number + 1 < len(life) else None)
        assert detail["grouping"] == {"version": "v1", "rule": "stack", "parts": ["Error", "run in src/a.js"]}
    latest = await both.ask(f"{both.issue(100)}/events/latest")
    assert latest["event"]["id"] == life[-1]["id"]
    oldest = await both.ask(f"{both.issue(100)}/events/oldest")
    assert oldest["event"]["id"] == life[0]["id"]
    await both.ask(f"{both.project}/events/latest")
    await both.ask(f"{both.project}/events/{life[0]['id'].upper()}")


async def test_an_event_of_a_merged_issue_says_what_grouped_it_and_who_merged_it(both: Both) -> None:
    for part, whole in MERGED.items():
        for event, fingerprint in both.history.events:
            if fingerprint not in (part, whole):
                continue
            for place in (both.issue(whole), both.project):
                detail = await both.ask(f"{place}/events/{event['id']}")
                if detail.get("error") == "damagedPayload":
                    continue
                assert detail["grouping"]["parts"] == why(fingerprint).parts
                assert (detail["merged"] or {}).get("by") == ("admin" if fingerprint == part else None)
                assert detail["issueId"] == hex64(both.history.issue(whole))


@pytest.mark.holds("contract 4 tags")
async def test_tags_and_completion(both: Both) -> None:
    for query in QUERIES:
        await both.ask(f"{both.project}/tags", query=query)
        await both.ask(f"{both.issue(101)}/tags", query=query)
    values = await both.ask(f"{both.project}/tags/tier/values", prefix="p")
    assert [value["value"] for value in values["values"]] == ["pro"]
    assert (await both.ask(f"{both.project}/tags/nothing/values"))["values"] == []


@pytest.mark.holds("contract 4 language")
async def test_a_key_that_no_event_has_is_named_with_the_nearest_on_every_call(both: Both) -> None:
    for path in (
        f"{both.project}/issues",
        both.issue(100),
        f"{both.issue(100)}/events",
        f"{both.project}/events",
        f"{both.project}/tags",
        f"{both.issue(100)}/tags",
        f"{both.project}/stats",
        f"{both.issue(100)}/stats",
    ):
        answer = await both.ask(path, query="assigned:me tier:pro OR has:tear", interval="day")
        assert [one["key"] for one in answer["warnings"]] == ["assigned", "tear"], path
        assert [one["nearest"][0] for one in answer["warnings"]] == ["assignee", "tier"]
        assert (await both.ask(path, query="tier:pro", interval="day"))["warnings"] == []
    body = {"rules": [{"name": "r", "match": "x", "discard": True}]}
    tested = await both.post(f"{both.project}/grouping-rules:test?query=assigned:me", body)
    assert [one["key"] for one in tested["warnings"]] == ["assigned"]


@pytest.mark.holds("contract 4 stats")
async def test_counts_over_time(both: Both) -> None:
    for (query, span), interval in zip(product(QUERIES, RANGES), cycle(["hour", "day"]), strict=False):
        series = await both.ask(f"{both.project}/stats", query=query, interval=interval, **span)
        issue = await both.ask(f"{both.issue(102)}/stats", query=query, interval=interval, **span)
        assert len(series["series"]) == len(issue["series"])


async def test_releases_and_outcomes(both: Both) -> None:
    releases = await both.ask(f"{both.project}/releases")
    assert sum(release["events"] for release in releases["releases"]) == len(both.history.events)
    paged: list[Any] = []
    cursor: str | None = ""
    for _ in releases["releases"]:
        page = await both.ask(f"{both.project}/releases", limit=1, **({"cursor": cursor} if cursor else {}))
        paged += page["releases"]
        cursor = page["nextCursor"]
    assert (paged, cursor) == (releases["releases"], None)
    for span in RANGES:
        await both.ask(f"{both.project}/outcomes", **span)
        await both.ask(f"{both.project}/outcomes", interval="day", **span)


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
async def test_unknown_issue_is_the_same_error(both: Both, path: str) -> None:
    assert await both.ask(path) == {"error": "notFound"}


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
async def test_bad_question_is_the_same_error(both: Both, query: dict[str, str]) -> None:
    answer = await both.ask(f"{both.project}/issues", **query)
    assert answer["error"] == "validationFailed"


async def test_pages_show_what_clickhouse_holds(both: Both) -> None:
    for client in (both.fake, both.real):
        signed = await client.post("/sign-in", data={"password": PASSWORD}, allow_redirects=False)
        assert signed.status == 303
    for path in (
        f"{both.project}/issues?range=90d",
        f"{both.project}/issues?query=tier:pro&environment=staging&state=open&sort=users",
        both.issue(100),
        f"{both.issue(100)}/events/oldest",
        f"{both.issue(100)}/events?query=tier:pro",
        f"{both.project}/releases",
        f"{both.project}/outcomes",
    ):
        pages = [await _page(client, path) for client in (both.fake, both.real)]
        assert pages[0] == pages[1]


async def _page(client: Client, path: str) -> str:
    async with client.get(path) as answer:
        assert answer.status == 200
        # The address of the next page holds a cursor, and forms a token of the session.
        return re.sub(r"cursor=[^\"]+|value=\"[\w-]{30,}\"", "", await answer.text())
