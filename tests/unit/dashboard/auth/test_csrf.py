import pytest

from dashboard.auth.session import CSRF_HEADER
from tests.unit.dashboard.site import ADMIN, PASSWORD, Site

BODY = {"name": "second"}


async def test_form_without_its_token_is_refused(site: Site) -> None:
    await site.sign_in()
    answer = await site.client.post("/projects/new", data=BODY)
    assert answer.status == 403
    assert len(site.projects.all()) == 1


async def test_json_change_by_cookie_needs_the_header(site: Site) -> None:
    await site.sign_in()
    refused = await site.client.post("/api/v1/projects", json=BODY)
    assert (refused.status, (await refused.json())["error"]) == (403, "forbidden")
    taken = await site.client.post("/api/v1/projects", json=BODY, headers={CSRF_HEADER: await site.csrf()})
    assert taken.status == 201


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ],
)
async def test_page_of_another_site_changes_nothing_even_with_the_password(
    site: Site, headers: dict[str, str]
) -> None:
    answer = await site.client.post("/api/v1/projects", json=BODY, headers=ADMIN | headers)
    assert answer.status == 403
    signed = await site.client.post("/sign-in", data={"password": PASSWORD}, headers=headers)
    assert signed.status == 403


async def test_own_page_may_sign_in(site: Site) -> None:
    origin = str(site.client.make_url("/")).rstrip("/")
    answer = await site.client.post(
        "/sign-in", data={"password": PASSWORD}, headers={"Origin": origin}, allow_redirects=False
    )
    assert answer.status == 303


async def test_each_page_masks_the_token_differently_since_pages_are_compressed(site: Site) -> None:
    await site.sign_in()
    first, second = await site.csrf(), await site.csrf()
    assert first != second
    for token in (first, second):
        answer = await site.client.post("/projects/new", data=BODY | {"csrf": token}, allow_redirects=False)
        assert answer.status == 303
    answer = await site.client.get("/projects/new")
    assert answer.headers["Content-Encoding"] in {"gzip", "deflate"}
    for wrong in (first[:-4], first[4:], "A" * len(first), "é"):
        answer = await site.client.post("/projects/new", data=BODY | {"csrf": wrong})
        assert answer.status == 403
