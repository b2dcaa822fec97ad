"""Every operation and page by role: what each may do, and that an unseen project is as one that isn't there."""

import random
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from aiohttp import ClientResponse, web

from dashboard.api.api_routes import OPERATIONS
from dashboard.auth import authorize
from dashboard.auth.access import Role
from dashboard.dashboard_app import build_app
from dashboard.dependencies import Dependencies
from dashboard.http.paths import API, is_open
from dashboard.pages.page_routes import PAGES
from tests.long_forms import first_quick
from tests.unit.dashboard.auth.unseen import (
    ISSUES,
    KEY,
    MISSING,
    OWN,
    UNSEEN,
    VIEW,
    IssueProjects,
    signed_in,
    two_projects,
)
from tests.unit.dashboard.projects import MemoryProjects
from tests.unit.dashboard.site import SETTINGS, Site


class Row(NamedTuple):
    """A row of the table."""

    method: str
    path: str
    needs: Role

    def at(self, site: Site, project: int) -> str:
        """The row's path for a project or its issue."""
        token = site.project.tokens[0].token
        values = {"project": project, "issue": ISSUES[project], "token": token, "view": VIEW.id}
        values |= {"event": "latest", "key": "tier", "field": "release", "change": "0" * 16, "apiKey": KEY.id}
        return re.sub(r"\{(\w+)(?::[^}]*)?\}", lambda found: str(values[found[1]]), self.path)

    @property
    def of_project(self) -> bool:
        return "{project}" in self.path or "{issue}" in self.path


TABLE = [
    *(Row(one.method, API + one.path, one.needs) for one in OPERATIONS),
    *(Row(one.method, one.path, one.needs) for one in PAGES),
]


async def ask(site: Site, row: Row, project: int, headers: dict[str, str], **given: Any) -> ClientResponse:
    body = (
        {} if row.method == "GET" else given or ({"json": {}} if row.path.startswith(API) else {"data": {}})
    )
    path = row.at(site, project)
    return await site.client.request(row.method, path, headers=headers, allow_redirects=False, **body)


async def shown(answer: ClientResponse) -> tuple[int, str]:
    """Status and body, without the token that differs with each page."""
    return answer.status, re.sub(r'name="csrf" value="[^"]+"', "", await answer.text())


def test_every_route_is_open_or_in_the_table() -> None:

    app = build_app(SETTINGS, Dependencies(IssueProjects(), MemoryProjects()))
    declared = {(row.method, re.sub(r":[^}]*\}", "}", row.path)) for row in TABLE}
    assert len(declared) == len(TABLE)
    left = set(routes(app)) - declared
    assert {(method, path) for method, path in left if not is_open(path)} == set()


def routes(app: web.Application) -> Iterator[tuple[str, str]]:
    """Method and path of every route; HEAD is that of GET."""
    for route in app.router.routes():
        path = route.resource.canonical if route.resource is not None else ""
        yield ("GET" if route.method == "HEAD" else route.method), path + ("/" if path == "/static" else "")


@pytest.mark.parametrize("everywhere", [True, False])
@pytest.mark.parametrize("role", list(Role))
async def test_a_role_opens_what_the_table_says(role: Role, everywhere: bool) -> None:
    given = f'{{"{role.title}": ["team"]}}' if role else "{}"
    roles = given if everywhere else f'{{"projects": {{"shop": {given}}}}}'
    async with two_projects(roles) as site:
        headers, shop = await signed_in(site, "team"), site.projects.all()[0]
        for row in TABLE:
            await site.projects.edit(OWN, lambda _: shop)
            answer = await ask(site, row, OWN, headers)
            has = role if everywhere or row.of_project else Role.NONE
            if row.of_project and not has:
                assert answer.status == 404, row
            elif has < row.needs:
                assert answer.status == 403, row
                assert f"this needs the role {row.needs.title}" in await answer.text(), row
            else:
                assert answer.status not in {401, 403, 404}, row
            if row.path.endswith("/sign-out"):
                headers = await signed_in(site, "team")


MEMBERS = (
    '{"projects": {"shop": {"member": ["team"], "viewer": ["readers"]}, "bank": {"admin": ["bankers"]}}}'
)
JSON_BODIES: list[Any] = [{}, [], {"status": "resolved"}, {"text": "x"}, {"rules": []}, {"name": ""}]
FORM_BODIES: list[Any] = [{}, {"change": "resolve"}, {"do": "save"}, {"name": "x"}, b"\0"]
BODIES = [*({"json": body} for body in JSON_BODIES), *({"data": body} for body in FORM_BODIES)]
QUERIES = ["", "?query=is:open", "?query=(", "?start=x", "?limit=0", "?cursor=x", "?sort=x", "?done=resolve"]


async def test_issues_are_refused_in_step(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def note(seconds: float) -> None:
        assert 0 <= seconds <= authorize.REFUSAL_SECONDS
        waits.append(seconds)

    monkeypatch.setattr(authorize, "sleep", note)
    async with two_projects(MEMBERS) as site:
        headers = await signed_in(site, "team")
        for project, steps in ((OWN, 0), (UNSEEN, 1), (MISSING, 1)):
            waits.clear()
            await ask(site, Row("GET", f"{API}/issues/{{issue}}", Role.VIEWER), project, headers)
            assert len(waits) == steps


@pytest.mark.parametrize("pairs", first_quick([150, 5_000]))
async def test_an_unseen_project_is_as_one_that_isnt_there(pairs: int) -> None:
    chance = random.Random()
    rows = [row for row in TABLE if row.of_project]
    async with two_projects(MEMBERS) as site:
        for groups in (("team",), ("readers",), ()):
            headers = await signed_in(site, *groups)
            for _ in range(pairs // 3 + 1):
                row = chance.choice(rows)._replace(
                    method=chance.choice(["GET", "POST", "PATCH", "PUT", "DELETE"])
                )
                if chance.random() < 0.8:
                    row = chance.choice(rows)
                row = row._replace(path=row.path + chance.choice(QUERIES))
                given = chance.choice(BODIES)
                unseen, missing = [
                    await shown(await ask(site, row, project, headers, **given))
                    for project in (UNSEEN, MISSING)
                ]
                assert unseen == missing, (row, given)
                assert unseen[0] in {404, 405}, (row, given)


@pytest.mark.parametrize(
    ("path", "given"),
    [
        (f"{API}/issues/{ISSUES[OWN]}/merge", lambda issue: {"json": {"issues": [issue]}}),
        (f"{API}/projects/{OWN}/issues:bulk", lambda issue: {"json": {"issues": [issue], "status": "open"}}),
        (f"/issues/{ISSUES[OWN]}/change", lambda issue: {"data": {"change": "merge", "other": issue}}),
        (f"/projects/{OWN}/issues/change", lambda issue: {"data": {"change": "resolve", "issue": issue}}),
        (
            f"/projects/{OWN}/rules",
            lambda issue: {
                "data": {
                    "do": "save",
                    "into": issue,
                    "name": "n",
                    "match": "type:A",
                    "fingerprint": "one",
                    **dict.fromkeys(("position", "inApp", "notInApp", "discard", "enabled"), ""),
                }
            },
        ),
    ],
)
async def test_an_unseen_issue_in_a_body_is_as_one_that_isnt_there(path: str, given: Any) -> None:
    async with two_projects('{"projects": {"shop": {"admin": ["team"]}}}') as site:
        headers = await signed_in(site, "team")
        answers = [
            await shown(
                await site.client.post(path, headers=headers, allow_redirects=False, **given(ISSUES[project]))
            )
            for project in (UNSEEN, MISSING)
        ]
        assert answers[0] == answers[1]
        assert answers[0][0] == 404
        own = await site.client.post(path, headers=headers, allow_redirects=False, **given(ISSUES[OWN]))
        assert own.status == 503  # The issue's look-up is passed; this dashboard can't change issues.


async def test_lists_and_menus_leave_unseen_projects_out() -> None:
    async with two_projects(MEMBERS) as site:
        headers = await signed_in(site, "readers")
        listed = await (await site.client.get(f"{API}/projects", headers=headers)).json()
        assert [project["name"] for project in listed["projects"]] == ["shop"]
        for path in (
            "/projects",
            "/projects?name=bank",
            f"/projects/{OWN}/settings",
            f"/projects/{UNSEEN}/settings",
        ):
            html = await (await site.client.get(path, headers=headers)).text()
            assert f"/projects/{UNSEEN}/issues" not in html
        home = await site.client.get("/", headers=headers, allow_redirects=False)
        assert home.headers["Location"] == f"/projects/{OWN}/issues"
        stranger = await signed_in(site)
        home = await site.client.get("/", headers=stranger)
        assert (home.url.path, home.status) == ("/projects", 200)
        assert "ask an administrator" in await home.text()


@pytest.mark.parametrize(
    ("groups", "is_admin"), [(("readers",), False), (("team",), False), (("bankers",), True)]
)
async def test_controls_that_the_role_refuses_are_not_shown(groups: tuple[str, ...], is_admin: bool) -> None:
    async with two_projects(MEMBERS) as site:
        project = UNSEEN if is_admin else OWN
        headers = await signed_in(site, *groups)
        for page, control in (
            ("settings", "New token"),
            ("rules", 'value="save"'),
            ("notifications", 'value="save"'),
        ):
            html = await (await site.client.get(f"/projects/{project}/{page}", headers=headers)).text()
            assert (control in html) is is_admin
            assert "/projects/new" not in html
