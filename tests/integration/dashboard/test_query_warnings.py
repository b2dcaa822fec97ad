"""A key that no event has: pages warn next to the search field, with links to the likely queries."""

import re
from html import unescape

import pytest

from dashboard.view.filters import rename_key
from tests.integration.dashboard.stored_site import StoredSite


@pytest.mark.usefixtures("sample_stored")
@pytest.mark.parametrize("page", ["/projects/{project}/issues", "/issues/{issue}/events"])
async def test_a_misspelt_key_is_reported_with_the_list_that_was_meant(site: StoredSite, page: str) -> None:
    _, listed = await site.api("GET", f"/projects/{site.project.id}/issues")
    address = page.format(project=site.project.id, issue=listed["issues"][0]["id"])
    await site.sign_in()
    html = await (await site.client.get(f"{address}?query=assigned:me")).text()
    assert re.search(r"has the tag <code><bdi>assigned</bdi>", html)
    assert "?query=assignee%3Ame" in unescape(html)
    assert "has the tag" not in await (await site.client.get(f"{address}?query=assignee:me")).text()
    assert (await site.client.get(f"{address}?query=a+AND")).status == 400


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("assigned:me a", "assignee:me a"),
        ("-assigned:me (assigned:[a, b])", "-assignee:me (assignee:[a, b])"),
        ("has:assigned assigned", "has:assignee assigned"),
        ('unassigned:x "assigned:x"', 'unassigned:x "assigned:x"'),
    ],
)
def test_a_key_is_replaced_where_it_is_one(query: str, meant: str) -> None:
    assert rename_key(query, "assigned", "assignee") == meant
