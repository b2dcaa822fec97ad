"""People sign in once, at oauth2-proxy before the dashboard, or at nginx that asks it."""

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest
from aiohttp import ClientSession
from msgspec.structs import replace

from control.project_edits import create
from local.ports import free_port
from tests.integration.dashboard.sign_in_proxy import Provider, answering, nginx, oauth2_proxy
from tests.integration.dashboard.store import Store
from tests.integration.dashboard.stored_site import StoredSite, stored_site
from tests.unit.dashboard import sample
from tests.unit.dashboard.auth.test_proxy_identity import PROXIED
from tests.unit.dashboard.auth.test_proxy_sign_in import csrf_of
from tests.unit.dashboard.site import NOW

pytestmark = pytest.mark.slow
BANK = 7_000_002
ISSUE = f"/issues/{sample.issue_of(sample.SHOWCASE)}"
SETTINGS = replace(
    PROXIED,
    dashboard_password_sign_in=False,
    dashboard_proxy_sign_out_url="/oauth2/sign_out",
    dashboard_roles='{"projects": {"shop": {"member": ["dev"], "viewer": ["*"]}, "bank": {"viewer": ["bankers"]}}}',
)


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    async with Provider().listening() as listening:
        yield listening


@pytest.fixture
async def site(store: Store) -> AsyncIterator[StoredSite]:
    store.fill(NOW)
    async with stored_site(store, sample.PROJECT, SETTINGS) as running_site:
        await running_site.projects.write(replace(create("bank", now_ms=NOW), id=str(BANK)))
        yield running_site


@pytest.fixture(params=["oauth2-proxy", "nginx"])
async def front(
    request: pytest.FixtureRequest, site: StoredSite, provider: Provider, tmp_path: Path
) -> AsyncIterator[str]:
    """The address that people open."""
    dashboard, port = str(site.client.make_url("/")).rstrip("/"), free_port()
    async with AsyncExitStack() as stack:
        if request.param == "nginx":
            auth = free_port()
            stack.enter_context(nginx(tmp_path, port, auth, dashboard))
            stack.enter_context(oauth2_proxy(tmp_path, provider, auth, dashboard, port))
            await answering(auth)
        else:
            stack.enter_context(oauth2_proxy(tmp_path, provider, port, dashboard, port))
        await answering(port)
        yield f"http://127.0.0.1:{port}"


def browser() -> ClientSession:
    return ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))


async def test_people_sign_in_once_and_do_what_their_groups_allow(
    front: str, provider: Provider, site: StoredSite
) -> None:
    provider.person, provider.groups = "ann@shop.example", ["dev", "staff"]
    async with browser() as ann:
        html = await (await ann.get(front + ISSUE)).text()
        assert ">ann@shop.example<" in html
        data = {"csrf": csrf_of(html), "change": "comment", "text": "seen"}
        changed = await ann.post(f"{front}{ISSUE}/change", data=data)
        assert (changed.status, provider.sign_ins) == (200, 1)
        activity = await (await ann.get(f"{front}/api/v1{ISSUE}/activity")).json()
        assert activity["activity"][0]["by"] == "ann@shop.example"
        assert (await ann.get(f"{front}/projects/{BANK}/issues")).status == 404
        listed = await (await ann.get(f"{front}/api/v1/projects")).json()
        assert [project["name"] for project in listed["projects"]] == ["shop"]
        # The sign-out here leads to the proxy's, after which no page opens without another sign-in.
        html = await (await ann.get(front + ISSUE)).text()
        left = await ann.post(f"{front}/sign-out", data={"csrf": csrf_of(html)})
        address = re.sub("^0; url=", "", left.headers["Refresh"])
        await ann.get(front + address, allow_redirects=False)
        again = await ann.get(front + ISSUE, allow_redirects=False)
        assert again.status in {302, 303}
        assert again.headers["Location"].startswith((provider.url, "/oauth2", front + "/oauth2"))


async def test_a_browser_can_not_name_another_person(
    front: str, provider: Provider, site: StoredSite
) -> None:
    provider.person, provider.groups = "eve@shop.example", ["staff"]
    claims = {
        "X-Forwarded-User": "ann@shop.example",
        "X-Forwarded-Groups": "bankers",
        "Svc-Proxy-Secret": "x",
    }
    underscored = {name.replace("-", "_"): value for name, value in claims.items()}
    async with browser() as eve:
        await eve.get(front + ISSUE)
        for headers in (claims, underscored):
            html = await (await eve.get(front + ISSUE, headers=headers)).text()
            assert ">eve@shop.example<" in html
            assert (await eve.get(f"{front}/projects/{BANK}/issues", headers=headers)).status == 404
        direct = await site.client.get(ISSUE, headers=claims)
        assert direct.status == 403
