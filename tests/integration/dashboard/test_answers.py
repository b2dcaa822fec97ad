"""The answers of each call, by the words of the contract, over ClickHouse: fields, defaults, limits, orders."""

import re
from math import sqrt
from typing import Any

import pytest

from schemas.ids import hex64
from schemas.times import HOUR_MS, iso, parse_iso
from tests.integration.dashboard.api import Api
from tests.integration.dashboard.history import MERGED, NOW_MS, why

ISSUE = {
    *("id", "projectId", "errorType", "message", "culprit", "status", "regressed", "platform", "firstSeen", "lastSeen"),
    *("events", "users", "firstRelease", "lastRelease", "environments", "assignee", "resolvedIn", "ignoreUntil"),
    *("fingerprints", "trend", "totalEvents", "totalUsers", "title"),
}  # fmt: skip
EVENT = {
    *("event", "issueId", "receivedAt", "sdk", "previousEventId", "nextEventId", "grouping"),
}  # fmt: skip
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
CAMEL = re.compile(r"[a-z][a-zA-Z0-9]*")
FORTNIGHT = 14 * 24 * HOUR_MS


def calls(api: Api) -> list[tuple[str, str, set[str], set[str]]]:
    """Call, the key of its list ('' for none), the fields of the answer, and those of one entry."""
    project, issue = api.project, api.issue(100)
    return [
        (f"{project}/issues", "issues", {"issues", "nextCursor"}, ISSUE),
        (issue, "", ISSUE, set()),
        (f"{issue}/activity", "activity", {"activity", "nextCursor"}, {"kind", "by", "at"}),
        (f"{issue}/events", "events", {"events", "nextCursor"}, {"id", "issueId"}),
        (f"{issue}/events/latest", "", EVENT, set()),
        (f"{project}/events", "events", {"events", "nextCursor"}, {"id", "issueId"}),
        (f"{project}/events/oldest", "", EVENT, set()),
        (f"{project}/tags", "tags", {"tags"}, {"key", "distinct", "values"}),
        (f"{issue}/tags", "tags", {"tags"}, {"key", "distinct", "values"}),
        (f"{project}/tags/tier/values", "values", {"values"}, {"value", "events"}),
        (f"{project}/stats", "series", {"series"}, {"time", "events", "users"}),
        (f"{issue}/stats", "series", {"series"}, {"time", "events", "users"}),
        (f"{project}/releases", "releases", {"releases", "nextCursor"},
         {"release", "firstSeen", "lastSeen", "events", "newIssues", "regressions"}),
        (f"{project}/releases:compare", "issues", {"beforeRelease", "afterRelease", "before", "after", "issues"},
         {"id", "message", "before", "after", "verdict"}),
        (f"{project}/outcomes", "outcomes", {"outcomes"}, {"outcome", "sdk", "count"}),
    ]  # fmt: skip


@pytest.mark.holds("contract 4 issues", "contract 4 Issue", "contract 4 outcomes", "contract 4 events")
async def test_every_answer_has_the_fields_that_the_contract_names(api: Api) -> None:
    for path, key, fields, entry in calls(api):
        body = await api.ask(path)
        assert fields <= set(body), path
        if key:
            assert body[key], path
            assert all(entry <= set(one) for one in body[key]), path


def walk(value: Any, path: str = "") -> list[tuple[str, Any]]:
    """Every place of an answer, except parts that clients sent (the event, its tags)."""
    if isinstance(value, dict):
        inner = [
            (f"{path}.{key}", item) for key, item in value.items() if key not in {"event", "tags", "data"}
        ]
        return [found for name, item in inner for found in [(name, item), *walk(item, name)]]
    return [found for item in value for found in walk(item, path)] if isinstance(value, list) else []


@pytest.mark.holds("contract 4")
async def test_keys_are_camel_case_and_times_utc_with_milliseconds(api: Api) -> None:
    for path, *_ in calls(api):
        for name, value in walk(await api.ask(path)):
            key = name.rpartition(".")[2]
            assert CAMEL.fullmatch(key), (path, name)
            if (
                key in {"firstSeen", "lastSeen", "receivedAt", "time", "at", "createdAt"}
                and value is not None
            ):
                assert TIME.fullmatch(value), (path, name, value)


@pytest.mark.holds("contract 4")
async def test_lists_have_50_entries_by_default_and_at_most_500(api: Api) -> None:
    events = await api.ask(f"{api.project}/events")
    assert len(events["events"]) == 50
    assert events["nextCursor"]
    everything = await api.ask(f"{api.project}/events", limit=500)
    assert len(everything["events"]) == len(api.history.events)
    assert everything["nextCursor"] is None
    for path in (f"{api.project}/events", f"{api.project}/issues", f"{api.issue(100)}/activity"):
        assert (await api.ask(path, limit=501))["error"] == "validationFailed"
        assert (await api.ask(path, limit=0))["details"][0]["field"] == "limit"


@pytest.mark.holds("contract 4")
async def test_a_range_is_the_last_14_days_of_the_events_time_by_default(api: Api) -> None:
    start = NOW_MS // HOUR_MS * HOUR_MS - FORTNIGHT
    for path in ("/issues", "/events", "/tags", "/stats", "/outcomes"):
        explicit = await api.ask(f"{api.project}{path}", start=iso(start))
        left_out = await api.ask(f"{api.project}{path}")
        for answer in (explicit, left_out):
            answer.pop("nextCursor", None)
        assert explicit == left_out, path
    series = (await api.ask(f"{api.project}/stats", interval="hour"))["series"]
    assert parse_iso(series[0]["time"]) == start


@pytest.mark.holds("contract 4")
async def test_an_end_is_not_in_its_range_and_a_start_is(api: Api) -> None:
    times = sorted(parse_iso(event["timestamp"]) for event, _ in api.history.events)
    found = await api.ask(f"{api.project}/events", start=iso(times[40]), end=iso(times[80]), limit=500)
    assert len(found["events"]) == sum(times[40] <= time < times[80] for time in times)


def surprise(older: int, newer: int) -> int:
    return round(1000 * (newer - older) / sqrt(max(1, newer + older)))


@pytest.mark.parametrize(
    ("sort", "key"),
    [
        ("lastSeen", lambda issue: issue["lastSeen"]),
        ("firstSeen", lambda issue: issue["firstSeen"]),
        ("events", lambda issue: issue["events"]),
        ("users", lambda issue: issue["users"]),
        ("trend", lambda issue: surprise(sum(issue["trend"][:7]), sum(issue["trend"][7:]))),
    ],
)
@pytest.mark.holds("contract 4 issues")
async def test_the_greatest_comes_first_in_every_order(api: Api, sort: str, key: Any) -> None:
    body = await api.ask(f"{api.project}/issues", sort=sort, limit=500)
    keys = [key(issue) for issue in body["issues"]]
    assert keys == sorted(keys, reverse=True)
    if sort == "lastSeen":
        assert (await api.ask(f"{api.project}/issues", limit=500))["issues"] == body["issues"]


@pytest.mark.holds("contract 4 Issue")
async def test_a_trend_has_24_hourly_or_14_daily_counts(api: Api) -> None:
    for start, count in ((NOW_MS - 24 * HOUR_MS, 24), (NOW_MS - FORTNIGHT, 14), (NOW_MS - 3 * FORTNIGHT, 14)):
        issues = (await api.ask(f"{api.project}/issues", start=iso(start)))["issues"]
        assert {len(issue["trend"]) for issue in issues} == {count}


@pytest.mark.holds("contract 4 tags")
async def test_every_call_counts_the_events_of_its_query_and_range(api: Api) -> None:
    start = NOW_MS - 48 * HOUR_MS
    given = {"query": "tier:pro", "start": iso(start)}
    wanted = {
        event["id"]
        for event, _ in api.history.events
        if event["tags"]["tier"] == "pro" and parse_iso(event["timestamp"]) >= start
    }
    events = (await api.ask(f"{api.project}/events", limit=500, **given))["events"]
    assert {one["id"] for one in events} == wanted
    issues = (await api.ask(f"{api.project}/issues", limit=500, **given))["issues"]
    assert sum(one["events"] for one in issues) == len(wanted)
    series = (await api.ask(f"{api.project}/stats", interval="hour", **given))["series"]
    assert sum(one["events"] for one in series) == len(wanted)
    tags = {tag["key"]: tag for tag in (await api.ask(f"{api.project}/tags", **given))["tags"]}
    assert tags["tier"]["values"] == [{"value": "pro", "events": len(wanted)}]
    values = await api.ask(f"{api.project}/tags/tier/values", prefix="p")
    assert [one["value"] for one in values["values"]] == ["pro"]


@pytest.mark.holds("contract 4 Issue")
async def test_an_empty_fact_is_null_and_not_left_out(api: Api) -> None:
    issues = (await api.ask(f"{api.project}/issues", limit=500))["issues"]
    assert {issue["assignee"] for issue in issues} == {"zoe", "bob@x", None}
    assert {issue["resolvedIn"] for issue in issues} == {None}
    assert {issue["ignoreUntil"] for issue in issues} == {None}


async def test_an_event_of_a_merged_issue_shows_its_grouping_and_the_author_of_the_merge(api: Api) -> None:
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
