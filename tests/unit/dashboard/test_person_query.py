"""`assignee:me` and `assignee:team` are those of who asks, on pages and in the read API."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from query.person import NO_GROUPS, NO_PERSON
from storage.errors import NotFound
from storage.read.query.question import question
from storage.read.query.ranges import Range
from storage.read.reader import Reader
from tests.unit.dashboard.auth.test_proxy_identity import PROXIED
from tests.unit.dashboard.auth.test_proxy_sign_in import person
from tests.unit.dashboard.site import PASSWORD, Site, running_site

ISSUE = "0" * 16


class QueryReader(Reader):
    """A reader of an empty database that remembers the queries."""

    def __init__(self) -> None:
        self.queries: set[str] = set()

    async def close(self) -> None:
        """Nothing is open."""

    def for_page(self) -> "QueryReader":
        return self

    async def ping(self) -> None:
        """It answers."""

    async def read(self, call: Any) -> Any:
        """Nothing is found."""
        self.queries.add(getattr(call, "query", ""))
        raise NotFound("nothing is stored")


@asynccontextmanager
async def asking() -> AsyncIterator[tuple[Site, set[str]]]:
    reader = QueryReader()
    async with running_site(reader) as site:
        form = {"password": PASSWORD, "name": "Ann Lee"}
        await site.client.post("/sign-in", data=form, allow_redirects=False)
        yield site, reader.queries


@pytest.mark.parametrize("path", ["/projects/{}/issues", "/issues/{}/events", "/api/v1/projects/{}/issues"])
async def test_me_is_the_name_of_who_asks(path: str) -> None:
    async with asking() as (site, queries):
        thing = ISSUE if "issues/{}" in path else site.project.id
        answer = await site.client.get(path.format(thing), params={"query": "assignee:me"})
        assert answer.status == 404
        assert not [query for query in queries if "me" in query]
        if path != "/issues/{}/events":
            assert any('assignee:"Ann Lee"' in query for query in queries)


async def test_a_password_names_no_groups() -> None:
    async with asking() as (site, queries):
        path = f"/projects/{site.project.id}/issues"
        status, answer = await site.api("GET", path, params={"query": "assignee:team"})
        assert (status, answer["details"]) == (400, [{"field": "query", "message": NO_GROUPS}])
        assert not queries


async def test_a_group_named_as_the_word_doesnt_hide_the_others() -> None:
    reader = QueryReader()
    async with running_site(reader, settings=PROXIED) as site:
        path = f"/api/v1/projects/{site.project.id}/issues"
        for groups, status in (("team", 400), ("team,web,me", 404)):
            answer = await site.client.get(
                path, params={"query": "assignee:team"}, headers=person("ann", groups)
            )
            assert answer.status == status
    assert reader.queries >= {'assignee:"web"'}


def test_without_a_person_there_is_no_me() -> None:
    with pytest.raises(Exception, match=NO_PERSON):
        question(1, "x OR -assignee:[me, zoe]", Range(0, None), 0)
