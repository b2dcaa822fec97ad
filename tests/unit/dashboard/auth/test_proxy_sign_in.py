"""Sign-in by a trusted proxy: names, sessions, sign-out, and refusals."""

import re
from collections.abc import AsyncIterator

import pytest
from aiohttp import ClientSession, web
from msgspec.structs import replace

from dashboard.auth.session import COOKIE, CSRF_HEADER
from dashboard.dashboard_app import build_app, build_runner
from dashboard.dependencies import Dependencies
from schemas.notifications import ChannelsRecord
from storage.read.reader import Reader
from tests.unit.dashboard.auth.test_proxy_identity import PROOF, PROXIED
from tests.unit.dashboard.projects import MemoryProjects
from tests.unit.dashboard.site import ADMIN, NOW, NOWHERE, PASSWORD, Site, running_site

SETTINGS = replace(
    PROXIED,
    dashboard_roles='{"admin": ["sre"], "viewer": ["*"]}',
    dashboard_proxy_sign_out_url="https://id.example/out",
)


def person(name: str, *groups: str) -> dict[str, str]:
    """The headers of the proxy for a person."""
    return dict([PROOF]) | {"X-Forwarded-User": name, "X-Forwarded-Groups": ",".join(groups)}


ANN = person("ann", "sre")


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with running_site(settings=SETTINGS) as running:
        yield running


async def settings_page(site: Site, headers: dict[str, str]) -> str:
    answer = await site.client.get(f"/projects/{site.project.id}/settings", headers=headers)
    assert answer.status == 200
    return await answer.text()


def csrf_of(html: str) -> str:
    found = re.search(r'name="csrf" value="([^"]+)"', html)
    assert found is not None
    return found[1]


async def test_the_proxys_person_needs_no_password(site: Site) -> None:
    assert ">ann<" in await settings_page(site, ANN)
    assert (await site.client.get("/api/v1/projects", headers=ANN)).status == 200
    assert (await site.client.get("/sign-in", headers=ANN, allow_redirects=False)).status == 303


async def test_a_change_needs_the_token_of_a_session(site: Site) -> None:
    path = "/api/v1/projects"
    assert (await site.client.post(path, json={"name": "two"}, headers=ANN)).status == 403
    token = {CSRF_HEADER: csrf_of(await settings_page(site, ANN))}
    assert (await site.client.post(path, json={"name": "two"}, headers=ANN | token)).status == 201
    # Another person at the same browser doesn't change anything with it.
    other = person("bob", "sre")
    await settings_page(site, other)
    assert (await site.client.post(path, json={"name": "three"}, headers=other | token)).status == 403


async def test_a_leaver_loses_access_with_the_headers(site: Site) -> None:
    await settings_page(site, ANN)
    assert (await site.client.get("/api/v1/projects")).status == 401
    left = await site.client.get(f"/projects/{site.project.id}/settings", allow_redirects=False)
    assert left.headers["Location"].startswith("/sign-in")


async def test_groups_count_from_the_next_request_on(site: Site) -> None:
    token = {CSRF_HEADER: csrf_of(await settings_page(site, ANN))}
    less = person("ann", "dev") | token
    answer = await site.client.post("/api/v1/projects", json={"name": "two"}, headers=less)
    assert (answer.status, await answer.json()) == (
        403,
        {"error": "forbidden", "details": [{"field": "", "message": "this needs the role admin"}]},
    )


async def test_a_person_may_be_in_hundreds_of_groups() -> None:
    reader = Reader.open([NOWHERE])
    runner = build_runner(build_app(SETTINGS, Dependencies(reader, MemoryProjects())))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    headers = person("ann", *(f"a group with a long name {number}" for number in range(500)), "sre")
    async with ClientSession() as client:
        answer = await client.get(f"http://127.0.0.1:{runner.addresses[0][1]}/keys", headers=headers)
        assert answer.status == 200
    await runner.cleanup()
    await reader.close()


async def test_the_proxys_person_wins_over_a_password_session(site: Site) -> None:
    await site.sign_in()
    bob = person("bob")
    answer = await site.client.post("/api/v1/projects", json={"name": "two"}, headers=bob | ADMIN)
    assert answer.status == 403
    assert ">bob<" in await settings_page(site, bob)


async def test_sign_out_ends_the_session_and_leads_to_the_proxys(site: Site) -> None:
    token = csrf_of(await settings_page(site, ANN))
    copied = site.client.session.cookie_jar.filter_cookies(site.client.make_url("/"))[COOKIE].value
    left = await site.client.post("/sign-out", data={"csrf": token}, headers=ANN)
    assert left.headers["Refresh"] == "0; url=https://id.example/out"
    site.client.session.cookie_jar.clear()
    headers = ANN | {"Cookie": f"{COOKIE}={copied}", CSRF_HEADER: token}
    assert (await site.client.post("/api/v1/projects", json={"name": "two"}, headers=headers)).status == 403


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({PROOF[0]: "guessed"}, "secret"),
        ({"X-Forwarded-User": "admin"}, "name"),
        ({"X-Forwarded-User": "ann\u00a0lee"}, "name"),
    ],
)
async def test_refused_headers_are_counted_and_logged(
    site: Site, changes: dict[str, str], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await site.client.get("/api/v1/projects", headers=ANN | ADMIN | changes)
    assert (answer.status, (await answer.json())["error"]) == (403, "forbidden")
    metrics = await (await site.client.get("/metrics")).text()
    assert f'svc_dashboard_refused_headers_total{{reason="{reason}"}} 1.0' in metrics
    assert "guessed" not in caplog.text


async def test_headers_from_another_address_are_refused() -> None:
    async with running_site(settings=replace(SETTINGS, dashboard_trusted_proxies="10.0.0.0/8")) as site:
        assert (await site.client.get("/", headers=ANN)).status == 403
        # The password remains the way in, without the proxy.
        assert (await site.api("GET", "/projects"))[0] == 200


async def test_without_the_setting_headers_say_nothing() -> None:
    async with running_site() as site:
        assert (await site.client.get("/api/v1/projects", headers=ANN)).status == 401


async def test_a_switched_off_password_opens_nothing() -> None:
    async with running_site(settings=replace(SETTINGS, dashboard_password_sign_in=False)) as site:
        assert (await site.client.get("/api/v1/projects", headers=ADMIN)).status == 401
        for path in ("/", "/sign-in"):
            answer = await site.client.get(path, allow_redirects=False)
            assert answer.status == 401
            assert "sign in at the proxy" in await answer.text()
        assert (await site.client.post("/sign-in", data={"password": PASSWORD})).status == 401
        assert (await site.client.get("/api/v1/projects", headers=ANN)).status == 200


async def test_switching_the_password_off_ends_its_sessions() -> None:
    async with running_site(settings=SETTINGS) as site:
        await site.sign_in()
        cookie = site.client.session.cookie_jar.filter_cookies(site.client.make_url("/"))[COOKIE].value
    async with running_site(settings=replace(SETTINGS, dashboard_password_sign_in=False)) as site:
        answer = await site.client.get("/api/v1/projects", headers={"Cookie": f"{COOKIE}={cookie}"})
        assert answer.status == 401


@pytest.mark.parametrize("name", ["settings", "rules", "notifications"])
async def test_a_viewer_reads_forms_and_cant_fill_them(site: Site, name: str) -> None:
    site.log.append(ChannelsRecord(NOW, ("pager",)))
    for groups, disabled in (((), 1), (("sre",), 0)):
        path = f"/projects/{site.project.id}/{name}"
        html = await (await site.client.get(path, headers=person("ann", *groups))).text()
        found = re.findall(r'<form [^>]*action="/projects/.*?</form>', html, re.DOTALL)
        assert found
        assert [form.count('<fieldset class="bare" disabled>') for form in found] == [disabled] * len(found)
