import re

import pytest

from dashboard.attempts import MOST
from dashboard.session import COOKIE
from tests.unit.dashboard.site import ADMIN, PASSWORD, Site, basic


async def test_page_without_a_session_leads_to_the_sign_in_and_back(site: Site) -> None:
    wanted = f"/projects/{site.project.id}/settings?x=1"
    answer = await site.client.get(wanted, allow_redirects=False)
    assert answer.status == 303
    assert answer.headers["Location"] == f"/sign-in?next=/projects/{site.project.id}/settings%3Fx%3D1"
    form = await site.client.post(
        "/sign-in", data={"password": PASSWORD, "next": wanted}, allow_redirects=False
    )
    assert (form.status, form.headers["Location"]) == (303, wanted)


async def test_session_cookie_is_kept_from_scripts_and_other_sites(site: Site) -> None:
    answer = await site.client.post("/sign-in", data={"password": PASSWORD}, allow_redirects=False)
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith(f"{COOKIE}=")
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert "Max-Age=604800" in cookie
    assert "Path=/" in cookie


async def test_wrong_password_opens_nothing(site: Site) -> None:
    answer = await site.client.post("/sign-in", data={"password": "wrong"}, allow_redirects=False)
    assert answer.status == 401
    assert "Set-Cookie" not in answer.headers
    assert "not the password" in await answer.text()


@pytest.mark.parametrize(
    "place",
    ["//evil.example", "/\\evil.example", "https://evil.example", "/\t/evil.example", "javascript:x", ""],
)
async def test_sign_in_never_leads_to_another_server(site: Site, place: str) -> None:
    answer = await site.client.post(
        "/sign-in", data={"password": PASSWORD, "next": place}, allow_redirects=False
    )
    assert answer.headers["Location"] == "/"


async def test_attempts_are_limited_for_pages_and_programs_together(site: Site) -> None:
    for _ in range(MOST):
        await site.client.get("/api/v1/projects", headers=basic("admin", "wrong"))
    answer = await site.client.get("/api/v1/projects", headers=ADMIN)
    assert answer.status == 429
    assert (await answer.json())["error"] == "rateLimited"
    assert int(answer.headers["Retry-After"]) > 0
    page = await site.client.post("/sign-in", data={"password": PASSWORD})
    assert page.status == 429


async def test_wrong_user_is_refused(site: Site) -> None:
    answer = await site.client.get("/api/v1/projects", headers=basic("root", PASSWORD))
    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"].startswith("Basic")


@pytest.mark.parametrize("header", ["Basic", "Basic !!!", "Basic /////w==", "Bearer x", "Basic YWRtaW4="])
async def test_malformed_credentials_are_refused(site: Site, header: str) -> None:
    answer = await site.client.get("/api/v1/projects", headers={"Authorization": header})
    assert (answer.status, await answer.json()) == (401, {"error": "unauthorized"})


async def test_a_script_is_not_shown_the_browsers_own_dialog(site: Site) -> None:
    answer = await site.client.get("/api/v1/projects", headers={"Sec-Fetch-Mode": "cors"})
    assert answer.status == 401
    assert "WWW-Authenticate" not in answer.headers


async def test_session_reads_the_api(site: Site) -> None:
    await site.sign_in()
    answer = await site.client.get("/api/v1/projects")
    assert answer.status == 200


async def test_signed_out_session_is_dead_even_for_a_copy_of_its_cookie(site: Site) -> None:
    await site.sign_in()
    copied = site.client.session.cookie_jar.filter_cookies(site.client.make_url("/"))[COOKIE].value
    page = await (await site.client.get("/projects/new")).text()
    csrf = re.search(r'name="csrf" value="([^"]+)"', page)
    assert csrf is not None
    left = await site.client.post("/sign-out", data={"csrf": csrf[1]}, allow_redirects=False)
    assert left.status == 303
    site.client.session.cookie_jar.clear()
    answer = await site.client.get("/api/v1/projects", headers={"Cookie": f"{COOKIE}={copied}"})
    assert answer.status == 401


@pytest.mark.parametrize("cookie", ["x", "gAAAA", "\x80\xff", '"'])
async def test_forged_cookie_is_no_session(site: Site, cookie: str) -> None:
    raw = f"{COOKIE}={cookie}".encode("latin-1").decode("utf-8", "surrogateescape")
    answer = await site.client.get("/api/v1/projects", headers={"Cookie": raw})
    assert answer.status == 401
