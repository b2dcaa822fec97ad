"""Tests of grouping rules, damaged events and conditional reads over ClickHouse."""

import pytest

from schemas.ids import hex64
from storage.read.events.event_calls import SampleEvents
from storage.read.execute import Executor, Limits
from storage.read.reader import Reader
from tests.integration.dashboard.api import Api
from tests.integration.dashboard.history import NOW_MS
from tests.unit.dashboard.site import ADMIN

RULES = [
    {"name": "noise", "match": "type:RangeError tier:free", "discard": True},
    {"name": "one", "match": "größe -environment:prod", "fingerprint": ["one", "{{ default }}"]},
    {"name": "frames", "match": "has:user", "notInApp": ["src/*"]},
]


@pytest.mark.parametrize("query", ["", "?limit=20", "?query=tier:pro", "?start=2026-09-18T00:00:00Z"])
@pytest.mark.holds("contract 4 rules")
async def test_rules_do_the_same_to_the_same_past_events(api: Api, query: str) -> None:
    found = await api.post(f"{api.project}/grouping-rules:test{query}", {"rules": RULES})
    assert found["sampled"] > 0
    assert found["matched"] > 0
    assert [rule["name"] for rule in found["rules"]] == ["noise", "one", "frames"]


async def test_a_damaged_event_is_left_out_of_the_sample(api: Api) -> None:
    found = await api.post(f"{api.project}/grouping-rules:test", {"rules": []})
    assert found["sampled"] == len(api.history.events) - 1


async def test_a_sample_is_bounded_in_bytes(filled_url: str, api: Api) -> None:
    reader = Reader(Executor([filled_url], Limits()), lambda: NOW_MS)
    whole = await reader.read(SampleEvents(api.history.project, limit=160))
    sizes = [len(bytes(one.event)) for one in whole]
    bounded = SampleEvents(api.history.project, limit=160, max_bytes=sum(sizes[:7]) + 1)
    assert await reader.read(bounded) == whole[:7]
    await reader.close()


async def test_a_group_that_no_event_has_had_is_told_apart_from_issues_that_are_there(api: Api) -> None:
    found = await api.post(f"{api.project}/grouping-rules:test", {"rules": [RULES[1]]})
    assert {one["after"]["isKnown"] for one in found["examples"] if one["after"]} == {False}


@pytest.mark.holds("contract 4 events")
async def test_a_damaged_event_is_an_error_that_names_its_neighbours(api: Api) -> None:
    damaged = api.history.damaged
    life = next(life for life in api.history.lives().values() if damaged in {one["id"] for one in life})
    fingerprint = next(number for event, number in api.history.events if event["id"] == damaged)
    issue = hex64(api.history.issue(fingerprint))
    for path in (f"/issues/{issue}/events/{damaged}", f"{api.project}/events/{damaged}"):
        found = await api.ask(path)
        assert found["error"] == "damagedPayload"
        assert {one["field"]: one["message"] for one in found["details"]} == {
            "previousEventId": life[1]["id"],
            "nextEventId": life[3]["id"],
        }
    for index, field in ((1, "nextEventId"), (3, "previousEventId")):
        assert (await api.ask(f"/issues/{issue}/events/{life[index]['id']}"))[field] == damaged
    rows = await api.ask(f"/issues/{issue}/events", limit=500)
    assert damaged in {row["id"] for row in rows["events"]}


@pytest.mark.parametrize(
    "path", ["/issues?limit=3", "/events?limit=3", "/stats", "/tags", "/releases", "/outcomes"]
)
async def test_lists_that_have_not_changed_are_not_sent_again(api: Api, path: str) -> None:
    first = await api.client.get(f"/api/v1{api.project}{path}", headers=ADMIN)
    again = await api.client.get(
        f"/api/v1{api.project}{path}",
        headers=ADMIN | {"If-None-Match": first.headers["ETag"]},
    )
    assert (first.status, again.status, await again.read()) == (200, 304, b"")
