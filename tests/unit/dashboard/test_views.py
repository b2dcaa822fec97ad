"""Saved views: queries with a name, kept in the project's record, shown above the list."""

import re
from typing import Any

import pytest

from storage.project_edits import MAX_VIEWS
from tests.unit.dashboard.sample import fill
from tests.unit.dashboard.site import NOW, Site


async def save(site: Site, name: str, query: str = "is:open") -> tuple[int, Any]:
    return await site.api("POST", f"/projects/{site.project.id}/views", json={"name": name, "query": query})


async def test_a_view_is_saved_renamed_asked_otherwise_and_removed(site: Site) -> None:
    path = f"/projects/{site.project.id}/views"
    assert await site.api("GET", path) == (200, {"views": []})
    status, view = await save(site, " Open ones ", "is:open ")
    assert (status, view["name"], view["query"]) == (201, "Open ones", "is:open")
    one = f"{path}/{view['id']}"
    assert await site.api("PATCH", one, json={"name": "Mine"}) == (200, view | {"name": "Mine"})
    changed = view | {"name": "Mine", "query": "is:assigned"}
    assert await site.api("PATCH", one, json={"query": "is:assigned"}) == (200, changed)
    assert await site.api("GET", path) == (200, {"views": [changed]})
    assert await site.api("DELETE", one) == (200, {"views": []})
    assert (await site.api("DELETE", one))[0] == 404
    assert (await site.api("PATCH", one, json={"name": "x"}))[0] == 404


async def test_a_query_is_checked_when_it_is_saved(site: Site) -> None:
    status, body = await save(site, "broken", "a AND (")
    assert (status, body["details"][0]["field"]) == (400, "query")
    assert re.search(r"position 7: expected", body["details"][0]["message"])
    _, view = await save(site, "good")
    one = f"/projects/{site.project.id}/views/{view['id']}"
    assert (await site.api("PATCH", one, json={"query": "a AND ("}))[0] == 400
    assert (await site.api("GET", f"/projects/{site.project.id}/views"))[1]["views"] == [view]


@pytest.mark.parametrize("name", ["", " ", "x" * 61, "a\u0000b", "Open"])
async def test_a_name_is_short_printable_and_unique(site: Site, name: str) -> None:
    await save(site, "Open")
    status, body = await save(site, name)
    assert (status, body["details"][0]["field"]) == (400, "name")


async def test_a_project_has_so_many_views_and_no_more(site: Site) -> None:
    for number in range(MAX_VIEWS):
        assert (await save(site, f"v{number}"))[0] == 201
    assert (await save(site, "one more"))[0] == 400


async def post(site: Site, path: str, **fields: str) -> str:
    shown = await (await site.client.get("/projects/new")).text()
    csrf = re.search(r'name="csrf" value="([^"]+)"', shown)
    assert csrf is not None
    answer = await site.client.post(path, data=fields | {"csrf": csrf[1]})
    assert answer.status == 200
    return await answer.text()


async def test_the_list_saves_what_it_asks_and_shows_which_view_it_is(site: Site) -> None:
    fill(site.reader, site.project.number, NOW)
    await site.sign_in()
    listed = f"/projects/{site.project.id}/issues"
    shown = await (await site.client.get(f"{listed}?query=type:CheckoutError&state=open")).text()
    query = re.search(r'name="query" value="(\(type:CheckoutError\) is:open)"', shown)
    assert query is not None
    shown = await post(site, f"/projects/{site.project.id}/views", name="Check<out>", query=query[1])
    assert re.search(r'aria-current="true"><bdi>Check&lt;out&gt;', shown) or "Check&lt;out&gt;" in shown
    assert "Save as a view" not in shown
    [view] = (await site.api("GET", f"/projects/{site.project.id}/views"))[1]["views"]
    path = f"/projects/{site.project.id}/views/{view['id']}"
    assert "Renamed" in await post(site, f"{path}/rename", name="Renamed")
    assert "Renamed" not in await post(site, f"{path}/remove")
