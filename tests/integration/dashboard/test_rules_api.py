"""Grouping rules over the API: replaced as a whole, refused with reasons, shown with their problems."""

import pytest
from msgspec.structs import replace

from schemas.issues import RULE_SKIPPED, Outcome
from schemas.projects import GroupingRule
from schemas.times import iso
from storage.errors import StorageUnavailable
from storage.read.counts.count_calls import ListSkippedRules
from tests.integration.dashboard.stored_site import StoredSite
from tests.unit.dashboard.site import NOW


@pytest.mark.holds("contract 4 rules")
async def test_rules_come_back_in_their_order_without_an_error(site: StoredSite) -> None:
    path = f"/projects/{site.project.id}/grouping-rules"
    given = [
        {"name": "noise", "match": "type:Abort*", "discard": True},
        {"name": "one", "match": "tags[area]:cart", "fingerprint": ["cart", "{{ default }}"]},
    ]
    status, put = await site.api("PUT", path, json={"rules": given})
    assert status == 200
    assert [rule["name"] for rule in put["rules"]] == ["noise", "one"]
    assert [rule["error"] for rule in put["rules"]] == [None, None]
    assert await site.api("GET", path) == (200, put)


async def test_a_failing_rule_that_came_another_way_is_shown_with_its_error(site: StoredSite) -> None:
    broken = GroupingRule(name="broken", match="(type:X", fingerprint=("x",))
    await site.projects.write(replace(site.project, grouping_rules=(broken,)))
    status, answer = await site.api("GET", f"/projects/{site.project.id}/grouping-rules")
    assert status == 200
    assert answer["rules"][0]["error"]


async def test_a_rule_shows_on_how_many_events_it_was_skipped_and_why(site: StoredSite) -> None:
    rules = tuple(GroupingRule(name=name, match="type:X", fingerprint=("x",)) for name in ("dear", "fine"))
    await site.projects.write(replace(site.project, grouping_rules=rules))
    skipped = (("tooExpensive/dear", 1200), ("failed/dear", 34), ("failed/removed", 7))
    site.store.count(
        [
            Outcome(site.project.id, iso(NOW - 60_000), "", RULE_SKIPPED, reason, count, "grouper/0", number)
            for number, (reason, count) in enumerate(skipped)
        ]
    )
    _, answer = await site.api("GET", f"/projects/{site.project.id}/grouping-rules")
    assert [rule["skipped"] for rule in answer["rules"]] == [
        {"tooExpensive": 1200, "failed": 34},
        {"tooExpensive": 0, "failed": 0},
    ]
    await site.sign_in()
    page = await (await site.client.get(f"/projects/{site.project.id}/rules")).text()
    assert page.count("Skipped on about") == 1
    assert "Skipped on about 1,234 events in the last 14 days: too many terms or patterns" in page
    assert "it failed on 34 of them" in page


async def test_rules_are_shown_and_saved_while_skip_counts_are_unavailable(
    site: StoredSite,
) -> None:
    site.reader.failing[ListSkippedRules] = StorageUnavailable("ClickHouse took too long")
    path = f"/projects/{site.project.id}/grouping-rules"
    given = {"rules": [{"name": "one", "match": "type:X", "discard": True}]}
    status, put = await site.api("PUT", path, json=given)
    assert (status, put["rules"][0]["skipped"]) == (200, None)
    assert await site.api("GET", path) == (200, put)
    await site.sign_in()
    page = await (await site.client.get(f"/projects/{site.project.id}/rules")).text()
    assert "Skip counts are not available" in page
