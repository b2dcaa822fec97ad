from functools import partial

import pytest
from msgspec.structs import replace

from dashboard import dashboard_app
from dashboard.auth.session import COOKIE
from dashboard.auth.throttle import MAX_FAILURES, MAX_FAILURES_TOTAL, SignInThrottle
from tests.unit.dashboard.site import ADMIN, PASSWORD, SETTINGS, Site, basic, running_site


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


async def test_a_name_given_at_the_sign_in_is_on_every_page_on_one_line(site: Site) -> None:
    data = {"password": PASSWORD, "name": " Ann\n\u202e <b>Lee " + "x" * 100}
    assert (await site.client.post("/sign-in", data=data, allow_redirects=False)).status == 303
    html = await (await site.client.get(f"/projects/{site.project.id}/settings")).text()
    assert "Ann &lt;b&gt;Lee xxx" in html
    assert "x" * 60 not in html


@pytest.mark.parametrize("name", ["system", "System "])
async def test_the_name_of_automatic_changes_is_refused(site: Site, name: str) -> None:
    answer = await site.client.post("/sign-in", data={"password": PASSWORD, "name": name})
    assert answer.status == 400
    assert "choose another" in await answer.text()
    assert "Set-Cookie" not in answer.headers


async def test_wrong_password_opens_nothing(site: Site) -> None:
    answer = await site.client.post("/sign-in", data={"password": "wrong"}, allow_redirects=False)
    assert answer.status == 401
    assert "Set-Cookie" not in answer.headers
    assert "Wrong password" in await answer.text()


@pytest.mark.parametrize(
    "location",
    ["//evil.example", "/\\evil.example", "https://evil.example", "/\t/evil.example", "javascript:x", ""],
)
async def test_sign_in_never_leads_to_another_server(site: Site, location: str) -> None:
    answer = await site.client.post(
        "/sign-in", data={"password": PASSWORD, "next": location}, allow_redirects=False
    )
    assert answer.headers["Location"] == "/"


async def guess(site: Site, times: int, address: str = "", prefix: str = "wrong") -> list[int]:
    """Statuses of so many different wrong passwords."""
    headers = {"X-Forwarded-For": address} if address else {}
    answers = [
        await site.client.get("/api/v1/projects", headers=basic("admin", f"{prefix}{n}") | headers)
        for n in range(times)
    ]
    return [answer.status for answer in answers]


async def test_attempts_are_limited_for_pages_and_programs_together(site: Site) -> None:
    assert await guess(site, MAX_FAILURES) == [401] * MAX_FAILURES
    answer = await site.client.get("/api/v1/projects", headers=ADMIN)
    assert answer.status == 429
    assert (await answer.json())["error"] == "rateLimited"
    assert int(answer.headers["Retry-After"]) > 0
    page = await site.client.post("/sign-in", data={"password": PASSWORD})
    assert page.status == 429


async def test_who_is_signed_in_is_not_locked_out_by_others_at_the_same_address(site: Site) -> None:
    await site.sign_in()
    await guess(site, 3 * MAX_FAILURES)
    assert (await site.client.get("/api/v1/projects")).status == 200
    site.client.session.cookie_jar.clear()
    assert (await site.api("GET", "/projects"))[0] == 200


async def test_behind_a_trusted_proxy_one_clients_guesses_lock_out_that_client_alone() -> None:
    async with running_site(settings=replace(SETTINGS, dashboard_trusted_proxies="127.0.0.0/8")) as site:
        assert (await guess(site, MAX_FAILURES + 1, "203.0.113.9"))[-1] == 429
        # The client's own entries are to the left of the proxy's.
        assert (await guess(site, 1, "198.51.100.1, 203.0.113.9", "other")) == [429]
        for address in ("198.51.100.1", "203.0.113.10", ""):
            headers = {"X-Forwarded-For": address} if address else {}
            assert (await site.api("GET", "/projects", headers=headers))[0] == 200


async def test_an_attack_from_everywhere_slows_down_strangers_and_locks_out_no_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dashboard_app, "SignInThrottle", partial(SignInThrottle, delay_seconds=0.01))
    async with running_site(settings=replace(SETTINGS, dashboard_trusted_proxies="127.0.0.1")) as site:
        for number in range(MAX_FAILURES_TOTAL):
            await guess(site, 1, f"198.51.100.{number}", str(number))
        assert await guess(site, 1, "198.51.100.7", "again") == [429]
        # The first wrong password is looked at, after the delay; the next is not.
        assert await guess(site, 2, "203.0.113.9") == [401, 429]
        assert (await site.api("GET", "/projects", headers={"X-Forwarded-For": "203.0.113.10"}))[0] == 200


@pytest.mark.parametrize(
    ("trusted", "scheme", "secure"),
    [
        ("127.0.0.1", "https", True),
        ("127.0.0.1", "http", False),
        ("127.0.0.1", "", False),
        ("10.0.0.0/8", "https", False),
    ],
)
async def test_the_cookie_stays_on_https_where_a_trusted_proxy_speaks_it(
    trusted: str, scheme: str, secure: bool
) -> None:
    async with running_site(settings=replace(SETTINGS, dashboard_trusted_proxies=trusted)) as site:
        headers = {"X-Forwarded-Proto": scheme} if scheme else {}
        answer = await site.client.post(
            "/sign-in", data={"password": PASSWORD}, headers=headers, allow_redirects=False
        )
        assert ("Secure" in answer.headers["Set-Cookie"]) is secure


@pytest.mark.holds("contract 4")
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


async def test_signed_out_session_is_dead_even_for_a_copy_of_its_cookie(site: Site) -> None:
    await site.sign_in()
    copied = site.client.session.cookie_jar.filter_cookies(site.client.make_url("/"))[COOKIE].value
    left = await site.client.post("/sign-out", data={"csrf": await site.csrf()}, allow_redirects=False)
    assert left.status == 303
    site.client.session.cookie_jar.clear()
    answer = await site.client.get("/api/v1/projects", headers={"Cookie": f"{COOKIE}={copied}"})
    assert answer.status == 401


@pytest.mark.parametrize("cookie", ["x", "gAAAA", "\x80\xff", '"'])
async def test_forged_cookie_is_no_session(site: Site, cookie: str) -> None:
    raw = f"{COOKIE}={cookie}".encode("latin-1").decode("utf-8", "surrogateescape")
    answer = await site.client.get("/api/v1/projects", headers={"Cookie": raw})
    assert answer.status == 401


async def test_a_sign_in_opens_another_session(site: Site) -> None:
    await site.sign_in()
    first = await site.csrf()
    await site.sign_in()
    answer = await site.client.post("/projects/new", data={"name": "second", "csrf": first})
    assert answer.status == 403


@pytest.mark.parametrize(
    "part",
    [b'Content-Disposition: form-data; name="_charset_"\r\n\r\n' + b"c" * 99, b"no colon\r\n\r\nx"],
    ids=["charset", "header"],
)
async def test_a_form_in_broken_parts_is_refused(site: Site, part: bytes) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=B"}
    answer = await site.client.post("/sign-in", data=b"--B\r\n%s\r\n--B--\r\n" % part, headers=headers)
    assert answer.status == 400
