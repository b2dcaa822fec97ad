"""Who a change is recorded for, and sign-ins."""

import logging

import pytest

from schemas.change_records import Change
from schemas.errors import ProjectsUnavailable
from tests.unit.dashboard.auth.test_proxy_identity import PROXIED
from tests.unit.dashboard.auth.test_proxy_sign_in import csrf_of, person, settings_page
from tests.unit.dashboard.site import PASSWORD, Site, running_site


async def test_a_change_has_the_name_of_the_sign_in_and_the_way(site: Site) -> None:
    await site.client.post("/sign-in", data={"password": PASSWORD, "name": "ann"}, allow_redirects=False)
    path = f"/projects/{site.project.id}"
    form = {"csrf": await site.csrf()}
    await site.client.post(f"{path}/tokens", data=form, allow_redirects=False)
    token = site.project.tokens[0].token
    await site.client.post(f"{path}/tokens/{token}/revoke", data=form, allow_redirects=False)
    site.client.session.cookie_jar.clear()
    await site.api("PATCH", path, json={"retentionDays": 7})
    await site.api("POST", f"{path}/views", json={"name": "mine", "query": ""})
    rule = {"name": "a", "match": "release:x", "fingerprint": ["x"]}
    await site.api("PUT", f"{path}/grouping-rules", json={"rules": [rule]})
    assert [(one.kind, one.by, one.via) for one in site.projects.changes] == [
        ("signedIn", "ann", "page"),
        ("tokenCreated", "ann", "page"),
        ("tokenRevoked", "ann", "page"),
        ("projectChanged", "admin", "api"),
        ("viewsChanged", "admin", "api"),
        ("rulesChanged", "admin", "api"),
    ]


async def test_a_proxys_person_is_recorded_once_a_session() -> None:
    async with running_site(settings=PROXIED) as proxied:
        for _ in range(2):
            await settings_page(proxied, person("ann"))
        [change] = proxied.projects.changes
    assert (change.kind, change.by, change.after) == ("signedIn", "ann", '{"signIn":"proxy"}')


async def test_a_session_that_begins_with_an_error_page_is_kept() -> None:
    async with running_site(settings=PROXIED) as proxied:
        for _ in range(2):
            page = await proxied.client.get("/projects/99/issues", headers=person("ann"))
            assert page.status == 404
        assert len(proxied.projects.changes) == 1
        form = {"csrf": csrf_of(await page.text())}
        left = await proxied.client.post("/sign-out", data=form, headers=person("ann"), allow_redirects=False)
        assert left.status == 303


async def test_a_sign_in_without_kafka_is_logged(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def refuse(_: Change) -> None:
        raise ProjectsUnavailable("Kafka is away")

    monkeypatch.setattr(site.projects, "record", refuse)
    with caplog.at_level(logging.WARNING):
        await site.sign_in()
    assert "admin signed in by password" in caplog.text
