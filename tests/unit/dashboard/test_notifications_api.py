"""Notification rules in the read API, their test on past activity, and undelivered messages."""

from typing import Any

import pytest
from msgspec.structs import replace

from schemas.notifications import (
    CAUSES,
    CauseRecord,
    ChannelsRecord,
    DeliveryRecord,
    NotificationRule,
    RulesRecord,
    TimeRecord,
)
from schemas.times import DAY_MS, HOUR_MS, iso
from tests.unit.dashboard.site import NOW, Site
from tests.unit.notify.histories import cause

RULE: dict[str, Any] = {
    "name": "new in prod",
    "causes": ["created"],
    "channels": ["mail"],
    "query": "environment:prod",
}


def happened(number: int, hours_ago: int, project: str, environment: str = "prod") -> CauseRecord:
    at_ms = NOW - hours_ago * HOUR_MS
    return CauseRecord(at_ms, cause(number, at_ms=at_ms, project=project, environment=environment), 0, number)


async def test_rules_are_stored_with_an_id_and_given_back(site: Site) -> None:
    path = f"/projects/{site.project.id}/notification-rules"
    assert await site.api("GET", path) == (200, {"rules": []})
    status, made = await site.api("PUT", path, json={"rules": [RULE]})
    assert status == 200
    assert {name: made["rules"][0][name] for name in RULE} == RULE
    assert await site.api("GET", path) == (200, made)
    changed = {
        "rules": [made["rules"][0] | {"digestMinutes": 30, "quiet": {"start": "22:00", "end": "07:00"}}]
    }
    _, kept = await site.api("PUT", path, json=changed)
    assert kept["rules"][0]["id"] == made["rules"][0]["id"]
    (stored,) = site.projects.all()[0].notification_rules
    assert (stored.digest_minutes, stored.causes) == (30, ("created",))


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"causes": []}, "rules[0].causes", "must not be empty"),
        ({"causes": ["resolved"]}, "rules[0].causes[0]", "expected one of"),
        ({"channels": ["a b"]}, "rules[0].channels[0]", "match"),
        ({"query": "timeout"}, "rules[0].query", "causes carry no text to search"),
        ({"query": "feature:cart"}, "rules[0].query", "causes don't know feature, but type"),
        ({"query": "user:u1"}, "rules[0].query", "causes don't know user"),
        ({"query": "-(is:new OR message:x)"}, "rules[0].query", "causes don't know message"),
        ({"query": "timestamp:>-1d"}, "rules[0].query", "timestamp can't be compared"),
        ({"query": "-assignee:[me, zoe]"}, "rules[0].query", "assignee:me and assignee:team need someone"),
        ({"query": "is:closed"}, "rules[0].query", "position 3: expected one of open"),
        ({"quiet": {"start": "25:00", "end": "07:00"}}, "rules[0].quiet.start", "match"),
        (
            {"quiet": {"start": "22:00", "end": "07:00", "zone": "Mars/Base"}},
            "rules[0].quiet.zone",
            "time zone",
        ),
        ({"digestMinute": 5}, "rules[0].digestMinute", "unknown field"),
    ],
)
async def test_a_faulty_rule_is_refused_with_its_field_and_changes_nothing(
    site: Site, change: dict[str, Any], field: str, message: str
) -> None:
    path = f"/projects/{site.project.id}/notification-rules"
    status, answer = await site.api("PUT", path, json={"rules": [RULE | change]})
    assert (status, answer["error"]) == (400, "validationFailed")
    assert answer["details"][0]["field"].startswith(field)
    assert message in answer["details"][0]["message"]
    assert site.projects.all()[0].notification_rules == ()


async def test_a_preview_has_the_messages_of_two_weeks(site: Site) -> None:
    site.log += [
        happened(1, 15 * 24, site.project.id),
        happened(2, 50, site.project.id),
        happened(3, 49, site.project.id, "test"),
        happened(4, 48, "2"),
        happened(5, 47, site.project.id),
    ]
    path = f"/projects/{site.project.id}/notification-rules:preview"
    status, answer = await site.api("POST", path, json={"rules": [RULE | {"id": "a" * 16}]})
    assert status == 200
    assert (answer["total"], answer["start"]) == (2, iso(NOW - 14 * DAY_MS))
    assert [one["id"] for one in answer["messages"]] == ["cause-5", "cause-2"]
    assert answer["messages"][0]["ruleId"] == "a" * 16
    digest = {"rules": [RULE | {"digestMinutes": 600}]}
    _, answer = await site.api("POST", path, json=digest)
    assert [[cause["id"] for cause in one["causes"]] for one in answer["messages"]] == [
        ["cause-2", "cause-5"]
    ]
    assert site.projects.all()[0].notification_rules == ()


async def test_undelivered_messages_are_listed_with_their_reasons(site: Site) -> None:
    rule = NotificationRule("b" * 16, "all", CAUSES, ("mail", "hook"))
    site.log += [
        ChannelsRecord(NOW - DAY_MS, ("hook", "mail")),
        RulesRecord(NOW - DAY_MS, site.project.id, (rule,)),
        RulesRecord(NOW - DAY_MS, "2", (replace(rule, id="c" * 16),)),
        happened(1, 5, site.project.id),
        happened(2, 4, site.project.id),
        happened(3, 4, "2"),
        DeliveryRecord(NOW - HOUR_MS, f"{rule.id}/hook/cause-1", attempts=9, error="answered 500"),
        DeliveryRecord(NOW - HOUR_MS, f"{rule.id}/mail/cause-1", delivered=True),
        DeliveryRecord(
            NOW - HOUR_MS, f"{rule.id}/mail/cause-2", attempts=2, next_ms=NOW + 9, error="no answer"
        ),
        TimeRecord(NOW),
    ]
    status, answer = await site.api("GET", f"/projects/{site.project.id}/notifications")
    assert (status, answer["channels"]) == (200, ["hook", "mail"])
    assert [
        (one["id"], one["channel"], one["attempts"], one["nextAt"], one["error"])
        for one in answer["messages"]
    ] == [
        ("cause-2", "mail", 2, iso(NOW + 9), "no answer"),
        ("cause-1", "hook", 9, None, "answered 500"),
    ]
