"""Grouping rules over the API: replaced as a whole, refused with reasons, shown with what is wrong with them."""

from msgspec.structs import replace

from schemas.projects import GroupingRule
from tests.unit.dashboard.site import Site


async def test_rules_come_back_in_their_order_without_an_error(site: Site) -> None:
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


async def test_a_rule_that_can_never_work_is_refused_by_its_place_and_changes_nothing(site: Site) -> None:
    path = f"/projects/{site.project.id}/grouping-rules"
    rules = [
        {"name": "a", "match": "type:X", "discard": True},
        {"name": "b", "match": "(type:X", "discard": True},
    ]
    status, refused = await site.api("PUT", path, json={"rules": rules})
    assert status == 400
    assert [detail["field"] for detail in refused["details"]] == ["rules[1].match"]
    assert (await site.api("GET", path))[1] == {"rules": []}


async def test_a_failing_rule_that_came_another_way_is_shown_with_its_error(site: Site) -> None:
    broken = GroupingRule(name="broken", match="(type:X", fingerprint=("x",))
    await site.projects.write(replace(site.project, grouping_rules=(broken,)))
    status, shown = await site.api("GET", f"/projects/{site.project.id}/grouping-rules")
    assert status == 200
    assert shown["rules"][0]["error"]
