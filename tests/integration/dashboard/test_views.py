"""Saved views: queries with a name, kept in the project's record, shown above the list."""

import re
from html import unescape
from typing import Any
from urllib.parse import parse_qs

import pytest

from control.project_edits import MAX_VIEWS
from dashboard.view.filters import split_state, split_view
from tests.integration.dashboard.stored_site import StoredSite


async def save(site: StoredSite, name: str, query: str = "is:open") -> tuple[int, Any]:
    return await site.api("POST", f"/projects/{site.project.id}/views", json={"name": name, "query": query})


async def test_a_view_is_saved_renamed_asked_otherwise_and_removed(site: StoredSite) -> None:
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


async def test_a_query_is_checked_when_it_is_saved(site: StoredSite) -> None:
    status, body = await save(site, "broken", "a AND (")
    assert (status, body["details"][0]["field"]) == (400, "query")
    assert re.search(r"position 7: expected", body["details"][0]["message"])
    _, view = await save(site, "good")
    one = f"/projects/{site.project.id}/views/{view['id']}"
    assert (await site.api("PATCH", one, json={"query": "a AND ("}))[0] == 400
    assert (await site.api("GET", f"/projects/{site.project.id}/views"))[1]["views"] == [view]


@pytest.mark.parametrize("name", ["", " ", "x" * 61, "a\u0000b", "Open"])
async def test_a_name_is_short_printable_and_unique(site: StoredSite, name: str) -> None:
    await save(site, "Open")
    status, body = await save(site, name)
    assert (status, body["details"][0]["field"]) == (400, "name")


async def test_a_project_has_so_many_views_and_no_more(site: StoredSite) -> None:
    for number in range(MAX_VIEWS):
        assert (await save(site, f"v{number}"))[0] == 201
    assert (await save(site, "one more"))[0] == 400


@pytest.mark.parametrize("kept", ["7d", "2026-01-31T12:00/2026-02-01T12:00", "2026-01-31T12:00/"])
async def test_a_view_keeps_its_order_and_range(site: StoredSite, kept: str) -> None:
    path = f"/projects/{site.project.id}/views"
    given = {"name": "a", "query": "x", "sort": "users", "range": kept}
    status, view = await site.api("POST", path, json=given)
    assert (status, view) == (201, {"id": view["id"]} | given)
    changed = await site.api("PATCH", f"{path}/{view['id']}", json={"sort": "trend"})
    assert changed == (200, view | {"sort": "trend"})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("sort", "luck"),
        ("range", "8d"),
        ("range", "/"),
        ("range", "yesterday/"),
        ("range", "2026-02-01T12:00/2026-01-31T12:00"),
    ],
)
async def test_an_order_or_range_that_is_none_is_refused(site: StoredSite, field: str, value: str) -> None:
    body = {"name": "a", "query": "x", field: value}
    status, answer = await site.api("POST", f"/projects/{site.project.id}/views", json=body)
    assert (status, answer["error"]) == (400, "validationFailed")


def tab_of(html: str) -> str:
    states = html.partition('aria-label="State"')[2].partition("</nav>")[0]
    lit = re.search(r'aria-current="true">(\w+)<', states)
    assert lit is not None
    return lit[1]


@pytest.mark.usefixtures("sample_stored")
async def test_a_saved_list_comes_back_with_its_order_its_range_and_its_tab(site: StoredSite) -> None:
    await site.sign_in()
    listed = f"/projects/{site.project.id}/issues"
    html = await (await site.client.get(f"{listed}?state=regressed&sort=users&range=7d")).text()
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', html))
    parameters = {name: fields[name] for name in ("query", "sort", "range")}
    assert parameters == {"query": "is:regressed", "sort": "users", "range": "7d"}
    await post(site, f"/projects/{site.project.id}/views", name="Mine", **parameters)
    # From a list in another order and range.
    html = await (await site.client.get(f"{listed}?sort=events&range=24h")).text()
    match = re.search(r'<a href="([^"]+)"[^>]*><bdi>Mine</bdi>', html)
    assert match is not None
    assert parse_qs(unescape(match[1])[1:]) == {"state": ["regressed"], "sort": ["users"], "range": ["7d"]}
    html = await (await site.client.get(listed + unescape(match[1]))).text()
    assert re.search(r'aria-current="true"><bdi>Mine</bdi>', html)
    assert tab_of(html) == "Regressed"


@pytest.mark.parametrize(
    ("query", "parts"),
    [
        ("", ("", "", "")),
        ("(a b) environment:prod is:open", ("prod", "open", "a b")),
        ("(a) (b) environment:prod", ("prod", "", "(a) (b)")),
        ('environment:"my place" a', ("my place", "", "a")),
        ("environment:pr* a", ("", "", "environment:pr* a")),
        ("environment:[a, b]", ("", "", "environment:[a, b]")),
        ('environment:""', ("", "", 'environment:""')),
        ("-environment:prod", ("", "", "-environment:prod")),
        ("environment:a environment:b", ("", "", "environment:a environment:b")),
        ("tags[environment]:a is:[open, ignored]", ("", "", "tags[environment]:a is:[open, ignored]")),
        ("environment:prod OR a", ("", "", "environment:prod OR a")),
        ("(a AND", ("", "", "(a AND")),
    ],
)
def test_the_query_of_a_view_is_parted_into_the_fields_of_the_list(
    query: str, parts: tuple[str, str, str]
) -> None:
    assert split_view(query) == parts


@pytest.mark.parametrize(
    ("query", "state", "rest"),
    [
        ("", "", ""),
        ("is:open", "open", ""),
        ("timeout is:resolved tier:pro", "resolved", "timeout tier:pro"),
        ("(timeout) is:ignored", "ignored", "(timeout)"),
        ("timeout AND is:open", "open", '"timeout"'),
        ("is:[open, ignored]", "", "is:[open, ignored]"),
        ("is:open is:regressed", "", "is:open is:regressed"),
        ("-is:open", "", "-is:open"),
        ("is:open OR a", "", "is:open OR a"),
        ('"a is:open b" is:open', "open", '"a is:open b"'),
        ("is:assigned", "", "is:assigned"),
        ("a AND", "", "a AND"),
    ],
)
def test_the_state_of_a_query_is_parted_from_the_rest_of_it(query: str, state: str, rest: str) -> None:
    assert split_state(query) == (state, rest)


@pytest.mark.usefixtures("sample_stored")
async def test_a_tab_takes_the_place_of_the_state_that_the_query_asks_for(site: StoredSite) -> None:
    await site.sign_in()
    listed = f"/projects/{site.project.id}/issues"
    html = await (await site.client.get(f"{listed}?query=type:CheckoutError+is:open")).text()
    assert tab_of(html) == "Open"
    assert 'href="?query=type%3ACheckoutError&amp;state=resolved"' in html
    assert tab_of(await (await site.client.get(f"{listed}?query=is:assigned")).text()) == "All"


async def post(site: StoredSite, path: str, **fields: str) -> str:
    answer = await site.client.post(path, data=fields | {"csrf": await site.csrf()})
    assert answer.status == 200
    return await answer.text()


@pytest.mark.usefixtures("sample_stored")
async def test_the_list_saves_its_query_and_shows_its_view(site: StoredSite) -> None:
    await site.sign_in()
    listed = f"/projects/{site.project.id}/issues"
    html = await (await site.client.get(f"{listed}?query=type:CheckoutError&state=open")).text()
    query = re.search(r'name="query" value="(\(type:CheckoutError\) is:open)"', html)
    assert query is not None
    html = await post(site, f"/projects/{site.project.id}/views", name="Check<out>", query=query[1])
    assert re.search(r'aria-current="true"><bdi>Check&lt;out&gt;', html) or "Check&lt;out&gt;" in html
    assert "Save as a view" not in html
    [view] = (await site.api("GET", f"/projects/{site.project.id}/views"))[1]["views"]
    path = f"/projects/{site.project.id}/views/{view['id']}"
    assert "Renamed" in await post(site, f"{path}/rename", name="Renamed")
    assert "Renamed" not in await post(site, f"{path}/remove")
