"""Grouping rules tested on past events over the API and on their page, before they are saved."""

import asyncio
import json
import re
from typing import Any

import msgspec
import pytest

from dashboard.http.http_errors import HttpError
from dashboard.trial_queue import TrialQueue
from grouping.fingerprint import GroupingEvent, fingerprint
from schemas.errors import WireError
from schemas.projects import GroupingRule
from tests.integration.dashboard.stored_site import StoredSite
from tests.unit.dashboard.sample import Sent, showcase
from tests.unit.dashboard.site import NOW

ONE = {"name": "all", "match": "type:*", "fingerprint": ["everything"]}


async def outcome(site: StoredSite, *rules: dict[str, Any], query: str = "", status: int = 200) -> Any:
    path = f"/projects/{site.project.id}/grouping-rules:test{query}"
    answered, body = await site.api("POST", path, json={"rules": list(rules)})
    assert answered == status, body
    return body


@pytest.fixture
async def full(sample_stored: int, site: StoredSite) -> StoredSite:
    return site


@pytest.mark.holds("contract 4 rules")
async def test_a_rule_for_everything_makes_one_issue_of_all(full: StoredSite) -> None:
    body = await outcome(full, ONE)
    assert body["sampled"] == body["matched"] + body["unreadable"]
    assert body["issuesBefore"] > 100
    assert body["issuesAfter"] == 1
    assert body["whole"] is True
    assert body["oldest"] < body["newest"]
    [rule] = body["rules"]
    assert rule.pop("microseconds") > 0
    assert rule == {
        "index": 0,
        "name": "all",
        "matched": body["matched"],
        "decided": body["matched"],
        "skipped": 0,
        "error": None,
    }
    assert {one["after"]["parts"][0] for one in body["examples"]} == {"given everything"}
    assert sum(one["events"] for one in body["examples"]) <= body["matched"]


async def test_examples_begin_with_events_that_would_move(site: StoredSite) -> None:
    sent = []
    kinds = ("StayError", "StayError", "StayError", "GoError")
    for number, kind in enumerate(kinds):
        event = showcase(NOW, number)
        event = event | {"error": event["error"] | {"type": kind}, "fingerprint": None}
        own = fingerprint(msgspec.json.decode(json.dumps(event).encode(), type=GroupingEvent)).hash
        sent.append(Sent(event, own, "test/1", NOW, [kind]))
    site.store.add(site.project.number, sent)
    rules: list[dict[str, Any]] = [
        {"name": "fits", "match": "", "inApp": ["nowhere"]},
        {"name": "noise", "match": "type:GoError", "discard": True},
    ]
    body = await outcome(site, *rules)
    assert [(one["errorType"], one["events"], one["after"] is None) for one in body["examples"]] == [
        ("GoError", 1, True),
        ("StayError", 3, False),
    ]
    assert (body["moved"], body["issuesBefore"], body["issuesAfter"]) == (0, 2, 1)


async def test_a_test_saves_nothing(full: StoredSite) -> None:
    await outcome(full, ONE)
    assert await full.api("GET", f"/projects/{full.project.id}/grouping-rules") == (200, {"rules": []})


@pytest.mark.parametrize(
    ("rules", "field"),
    [
        ([{"name": "a", "match": "(type:X", "discard": True}], "rules[0].match"),
        ([ONE, {"name": "b", "match": "is:open", "discard": True}], "rules[1].match"),
        ([{"name": "a", "match": "type:X"}], "rules[0]"),
        ([ONE, ONE], "rules[1].name"),
        ([ONE | {"name": ""}], "rules[0].name"),
        ([ONE | {"colour": "red"}], "rules[0].colour"),
    ],
)
async def test_unsavable_rules_are_refused_as_saving_refuses_them(
    site: StoredSite, rules: list[Any], field: str
) -> None:
    body = await outcome(site, *rules, status=400)
    path = f"/projects/{site.project.id}/grouping-rules"
    assert (400, body) == await site.api("PUT", path, json={"rules": rules})
    assert body["details"][0]["field"] == field


async def test_without_events_the_figures_are_zero(site: StoredSite) -> None:
    body = await outcome(site, ONE)
    assert (body["sampled"], body["oldest"], body["newest"], body["examples"]) == (0, None, None, [])


async def test_query_range_and_limit_choose_the_events(full: StoredSite) -> None:
    assert (await outcome(full, ONE, query="?limit=7"))["sampled"] == 7
    assert (await outcome(full, ONE, query="?query=type:CheckoutError"))["sampled"] == 90
    await outcome(full, ONE, query="?query=type:(", status=400)
    await outcome(full, ONE, query="?limit=2001", status=400)


async def test_other_calls_are_answered_while_rules_are_tested(full: StoredSite) -> None:
    rules = [{"name": str(number), "match": "*a*b*c*d*e*", "fingerprint": ["x"]} for number in range(100)]
    testing = asyncio.create_task(outcome(full, *rules))
    answered = 0
    while not testing.done():
        assert (await full.client.get("/healthz")).status == 200
        answered += 1
    assert (await testing)["sampled"] > 0
    assert answered > 1


async def test_too_many_concurrent_trials_are_refused() -> None:
    trials = TrialQueue(seconds=0.2, max_waiting=0)
    rules = [GroupingRule("a", "type:*", ("x",))]
    results = await asyncio.gather(
        *(trials.try_rules(rules, [], ()) for _ in range(3)), return_exceptions=True
    )
    trials.stop_thread()
    refused = [one for one in results if isinstance(one, HttpError)]
    assert [one.error for one in refused] == [WireError.UNAVAILABLE] * 2


BLANK = {
    "position": "",
    "name": "",
    "match": "",
    "fingerprint": "",
    "inApp": "",
    "notInApp": "",
    "discard": "no",
    "enabled": "yes",
}


async def post(site: StoredSite, do: str, *rules: dict[str, str]) -> tuple[int, str]:
    path = f"/projects/{site.project.id}/rules"
    fields = [("csrf", await site.csrf()), ("do", do)] + [
        item for rule in rules for item in (BLANK | rule).items()
    ]
    answer = await site.client.post(path, data=fields)
    return answer.status, await answer.text()


async def test_the_page_tests_before_it_saves(full: StoredSite) -> None:
    await full.sign_in()
    written = {
        "name": "pay",
        "match": "type:CheckoutError",
        "fingerprint": "pay\r\n{{ default }}\r\n",
        "inApp": "src/*",
    }
    status, page = await post(full, "test", written, {})
    assert status == 200
    assert '"test-title"' in page
    assert ">90<" in page
    assert re.search(r">[\d.]+ µs<", page)
    project = full.projects.get(full.project.number)
    assert project is not None
    assert project.grouping_rules == ()
    status, page = await post(full, "save", written, {})
    assert "Saved." in page
    project = full.projects.get(full.project.number)
    assert project is not None
    assert project.grouping_rules == (
        GroupingRule("pay", "type:CheckoutError", ("pay", "{{ default }}"), in_app=("src/*",)),
    )


async def test_the_page_orders_rules_by_their_places_and_lets_blank_ones_go(site: StoredSite) -> None:
    await site.sign_in()
    given = [
        {"position": position, "name": name, "match": "type:X", "fingerprint": "x"}
        for position, name in (("3", "c"), ("1", "a"), ("2", "b"))
    ]
    await post(site, "save", *given, {"fingerprint": "left over"})
    project = site.projects.get(site.project.number)
    assert project is not None
    assert [rule.name for rule in project.grouping_rules] == ["a", "b", "c"]


@pytest.mark.parametrize("do", ["test", "save"])
async def test_the_page_shows_problems_next_to_their_rule_and_keeps_the_input(
    site: StoredSite, do: str
) -> None:
    await site.sign_in()
    status, page = await post(
        site,
        do,
        {"name": "good", "match": "type:X", "discard": "yes"},
        {"name": "bad", "match": "type:(", "fingerprint": "x"},
    )
    assert status == 400
    assert page.index("Rule 2") < page.index("match: at position 5")
    assert 'value="type:("' in page
    project = site.projects.get(site.project.number)
    assert project is not None
    assert project.grouping_rules == ()


async def test_a_form_with_a_part_missing_is_refused(site: StoredSite) -> None:
    await site.sign_in()
    path = f"/projects/{site.project.id}/rules"
    answer = await site.client.post(path, data={"csrf": await site.csrf(), "do": "save", "name": "x"})
    assert answer.status == 400
