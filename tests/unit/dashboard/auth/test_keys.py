"""Keys for programs: on the API, by scope and project, until they end; shown once, and kept as a hash."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from control.key_edits import NewKey, add_key, revoke_key
from control.project_edits import create
from schemas.change_records import Change
from schemas.errors import BadChange, ProjectsUnavailable
from schemas.ids import new_secret_key, new_token
from schemas.projects import ALL_PROJECTS, Scope
from schemas.times import DAY_MS
from tests.eventually import eventually
from tests.unit.dashboard.auth.test_proxy_identity import PROXIED
from tests.unit.dashboard.site import NOW, SETTINGS, Site, running_site

API = "/api/v1"
TOKEN = "this is a project token, which only sends events: the API takes a key (svc_sk_)"


async def new_key(site: Site, *scopes: Scope, number: int | None = None, days: int | None = None) -> str:
    """The secret of another key, by default of the site's project."""
    secret, new = new_secret_key(), NewKey("-".join(scopes), scopes, days)
    owner = site.project.number if number is None else number
    await site.projects.edit(owner, lambda old: add_key(old, new, secret, "ann", NOW))
    return secret


async def ask(site: Site, secret: str, path: str, method: str = "GET", **given: Any) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {secret}"}
    answer = await site.client.request(method, API + path, headers=headers, **given)
    return answer.status, await answer.json()


@asynccontextmanager
async def site_with_namesake() -> AsyncIterator[tuple[Site, str]]:
    """A site with another project, which has the first one's id as its name; the other's path."""
    async with running_site() as site:
        await site.projects.write(namesake := create(site.project.id, now_ms=NOW))
        yield site, f"/projects/{namesake.id}"


@pytest.mark.parametrize(
    ("scopes", "read", "write", "admin"),
    [
        (("read",), 200, 403, 403),
        (("write",), 200, 201, 403),
        (("read", "admin"), 200, 201, 201),
        (("artifacts",), 404, 404, 404),
    ],
)
async def test_a_key_may_what_its_scopes_say_in_its_project_alone(
    scopes: tuple[Scope, ...], read: int, write: int, admin: int
) -> None:
    async with site_with_namesake() as (site, other):
        secret, own = await new_key(site, *scopes), f"/projects/{site.project.id}"
        assert (await ask(site, secret, own))[0] == read
        view = {"name": "mine", "query": "is:open"}
        assert (await ask(site, secret, f"{own}/views", "POST", json=view))[0] == write
        assert (await ask(site, secret, f"{own}/tokens", "POST"))[0] == admin
        assert (await ask(site, secret, other))[0] == 404
        assert (await ask(site, secret, "/api-keys"))[0] == 403
        listed = (await ask(site, secret, "/projects"))[1]["projects"]
        assert [project["id"] for project in listed] == ([site.project.id] if read == 200 else [])


async def test_a_key_of_all_projects_reaches_each_and_no_list_has_its_record() -> None:
    async with site_with_namesake() as (site, other):
        secret = await new_key(site, "admin", number=ALL_PROJECTS)
        assert (await ask(site, secret, other))[0] == 200
        assert (await ask(site, secret, "/projects", "POST", json={"name": "new"}))[0] == 201
        assert len((await ask(site, secret, "/projects"))[1]["projects"]) == 3
        assert (await ask(site, secret, f"/projects/{ALL_PROJECTS}"))[0] == 404


async def test_a_key_that_doesnt_count_is_refused_with_the_reason(site: Site) -> None:
    expired, revoked = await new_key(site, "read", days=1), await new_key(site, "write")
    project = site.projects.get(site.project.number)
    assert project is not None
    await site.projects.edit(project.number, lambda old: revoke_key(old, project.keys[1].id, NOW))
    old = replace(project.keys[0], expires_at="2025-10-09T08:53:20.000Z")
    await site.projects.edit(project.number, lambda now: replace(now, keys=(old, now.keys[1])))
    for secret, reason in (
        (expired, "this key has expired"),
        (revoked, "this key is revoked"),
        (new_secret_key(), "this key is unknown"),
        ("svc_sk_é", "this key is unknown"),
        (site.project.tokens[0].token, TOKEN),
        (new_token(), TOKEN),
    ):
        status, body = await ask(site, secret, "/projects")
        assert (status, body["error"]) == (401, "unauthorized")
        assert body["details"] == [{"field": "Authorization", "message": reason}]


async def test_no_key_counts_before_the_revoked_ones_are_known(site: Site) -> None:
    secret = await new_key(site, "read")
    site.projects.is_loaded = False
    assert (await ask(site, secret, f"/projects/{site.project.id}"))[0] == 503
    assert (await site.api("POST", "/api-keys", json={"name": "ci", "scopes": ["read"]}))[0] == 503


async def test_pages_take_no_key(site: Site) -> None:
    headers = {"Authorization": f"Bearer {await new_key(site, 'admin')}"}
    answer = await site.client.get("/projects", headers=headers, allow_redirects=False)
    assert (answer.status, answer.headers["Location"]) == (303, "/sign-in?next=/projects")


async def test_keys_work_without_the_password() -> None:
    settings = replace(PROXIED, dashboard_password_sign_in=False)
    async with running_site(settings=settings) as site:
        assert (await ask(site, await new_key(site, "read"), "/projects"))[0] == 200


async def test_the_day_of_the_last_use_is_written_once_and_again_after_a_failure(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, sent, broken, fails = await new_key(site, "read"), [], True, asyncio.Event()
    path, kept = f"/projects/{site.project.id}/api-keys", site.projects._send

    async def send(changes: Sequence[Change], key: str = "", value: bytes | None = None) -> None:
        sent.append(key)
        if broken:
            await fails.wait()
            raise ProjectsUnavailable("away")
        await kept(changes, key, value)

    monkeypatch.setattr(site.projects, "_send", send)
    for _ in range(2):
        assert (await ask(site, secret, "/projects"))[0] == 200
    fails.set()
    await eventually(lambda: not site.projects._uses)
    broken = False
    for _ in range(3):
        assert (await ask(site, secret, "/projects"))[0] == 200
        await eventually(lambda: not site.projects._uses)
    assert len(sent) == 2
    [key] = (await site.api("GET", path))[1]["keys"]
    assert (key["id"], key["lastUsed"]) == (sent[0].removeprefix("key/"), "2025-10-09")


@pytest.mark.parametrize("of_project", [True, False])
async def test_a_key_is_made_listed_and_revoked_by_the_api(site: Site, of_project: bool) -> None:
    path = f"/projects/{site.project.id}/api-keys" if of_project else "/api-keys"
    body, repeat = (
        {"name": "ci", "scopes": ["read", "artifacts"], "expiresInDays": 2},
        {"Idempotency-Key": "k"},
    )
    status, made = await site.api("POST", path, json=body, headers=repeat)
    [key] = made["keys"]
    assert (status, key["name"], key["scopes"], key["createdBy"]) == (
        201,
        "ci",
        ["read", "artifacts"],
        "admin",
    )
    assert key["expiresAt"] == "2025-10-11T08:53:20.000Z"
    assert await site.api("POST", path, json=body, headers=repeat) == (201, made | {"secret": None})
    assert (await ask(site, made["secret"], f"/projects/{site.project.id}"))[0] == 200
    status, left = await site.api("DELETE", f"{path}/{key['id']}")
    assert (status, left["keys"][0]["revokedAt"]) == (200, "2025-10-09T08:53:20.000Z")
    assert (await ask(site, made["secret"], "/projects"))[0] == 401
    assert (await site.api("DELETE", f"{path}/{'0' * 16}"))[0] == 400


async def test_only_the_hash_is_kept(site: Site) -> None:
    secret = await new_key(site, "read")
    kept = site.projects._registry.values[site.project.number]
    assert secret.encode() not in kept
    assert secret.removeprefix("svc_sk_").encode() not in kept


@pytest.mark.parametrize("of_project", [True, False])
async def test_a_page_shows_a_new_key_once(of_project: bool) -> None:
    async with running_site(settings=SETTINGS) as site:
        await site.sign_in()
        path = f"/projects/{site.project.id}/keys" if of_project else "/keys"
        form = {"csrf": await site.csrf(), "name": "ci", "read": "on", "expiresInDays": "30"}
        html = await (await site.client.post(path, data=form)).text()
        [secret] = re.findall(r"svc_sk_[0-9a-z]{26}", html)
        assert (await ask(site, secret, "/projects"))[0] == 200
        assert secret not in await (await site.client.get(path)).text()
        again = await site.client.post(path, data=form)
        assert again.status == 400
        assert "another key has this name" in await again.text()
        [key] = (await site.api("GET", path.replace("/keys", "/api-keys")))[1]["keys"]
        left = await site.client.post(f"{path}/{key['id']}/revoke", data=form)
        assert (left.status, left.url.path) == (200, path)
        assert (await ask(site, secret, "/projects"))[0] == 401


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"name": " "}, "1 to 100 characters"),
        ({"name": "a\x00"}, "1 to 100 characters"),
        ({"name": "ci", "read": None}, "choose at least one"),
        ({"name": "ci", "expiresInDays": "0"}, "must be between 1 and 3,650"),
        ({"name": "ci", "expiresInDays": "soon"}, "must be between 1 and 3,650"),
        ({"name": "ci", "expiresInDays": "9" * 5_000}, "must be between 1 and 3,650"),
    ],
)
async def test_a_wrong_field_is_named_and_makes_no_key(
    site: Site, fields: dict[str, Any], sentence: str
) -> None:
    await site.sign_in()
    form = {"csrf": await site.csrf(), "read": "on"} | fields
    answer = await site.client.post("/keys", data={name: text for name, text in form.items() if text})
    assert answer.status == 400
    assert sentence in await answer.text()
    assert site.projects.registry.all_projects.keys == ()


def test_a_record_has_a_limited_number_of_keys_and_an_expiry_of_whole_days() -> None:
    project, secret = create("shop", now_ms=NOW), new_secret_key()
    project = add_key(project, NewKey("a", ("read",), 1), secret, "ann", NOW - DAY_MS)
    assert project.keys[0].expires_at == "2025-10-09T08:53:20.000Z"
    for number in range(99):
        project = add_key(project, NewKey(f"{number}", ("read",)), secret, "ann", NOW)
    with pytest.raises(BadChange, match="at most 100 keys"):
        add_key(project, NewKey("b", ("read",)), secret, "ann", NOW)
