from typing import Any

import pytest

from schemas.ids import decode_token
from tests.unit.dashboard.site import Site


@pytest.mark.holds("contract 4 projects")
async def test_projects_are_listed_with_the_fields_of_the_contract(site: Site) -> None:
    status, body = await site.api("GET", "/projects")
    assert status == 200
    [project] = body["projects"]
    assert {"id", "name", "createdAt", "tokens", "rateLimitPerMinute", "retentionDays"} <= set(project)
    assert project["id"] == site.project.id
    assert project["tokens"][0]["token"] == site.project.tokens[0].token


@pytest.mark.holds("contract 4 projects")
async def test_created_project_answers_its_token(site: Site) -> None:
    status, body = await site.api("POST", "/projects", json={"name": "web", "rateLimitPerMinute": 9})
    assert status == 201
    assert decode_token(body["token"]) is not None
    assert [token["token"] for token in body["tokens"]] == [body["token"]]
    assert body["rateLimitPerMinute"] == 9
    stored = site.projects.get(int(body["id"]))
    assert stored is not None
    assert stored.name == "web"


@pytest.mark.holds("contract 4 projects")
async def test_update_keeps_omitted_fields(site: Site) -> None:
    status, body = await site.api("PATCH", f"/projects/{site.project.id}", json={"retentionDays": 7})
    assert status == 200
    assert (body["retentionDays"], body["name"]) == (7, "shop")


async def test_owners_are_replaced_as_a_whole(site: Site) -> None:
    path, owners = f"/projects/{site.project.id}", [{"match": "file:src/*", "assignee": "Ann Lee"}]
    assert (await site.api("PATCH", path, json={"owners": owners}))[1]["owners"] == owners
    assert (await site.api("PATCH", path, json={"name": "shop"}))[1]["owners"] == owners
    assert (await site.api("PATCH", path, json={"owners": []}))[1]["owners"] == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"rateLimitPerMinute": 0}, "rateLimitPerMinute"),
        ({"retentionDays": "many"}, "retentionDays"),
        ({"lenientSdks": [""]}, "lenientSdks[0]"),
        (
            {"owners": [{"match": "", "assignee": "zoe"}, {"match": "(", "assignee": "zoe"}]},
            "owners[1].match",
        ),
        ({"owners": [{"match": "", "assignee": "zoe", "team": "x"}]}, "owners[0].team"),
        ({"name": " "}, "name"),
        ({"tokens": []}, "tokens"),
    ],
)
async def test_bad_change_names_its_field(site: Site, body: dict[str, Any], field: str) -> None:
    status, answer = await site.api("PATCH", f"/projects/{site.project.id}", json=body)
    assert (status, answer["error"]) == (400, "validationFailed")
    assert answer["details"][0]["field"] == field


@pytest.mark.holds("contract 4 projects")
async def test_token_is_made_and_revoked(site: Site) -> None:
    status, created = await site.api("POST", f"/projects/{site.project.id}/tokens")
    assert status == 201
    assert len(created["tokens"]) == 2
    status, left = await site.api("DELETE", f"/projects/{site.project.id}/tokens/{created['token']}")
    assert status == 200
    revoked = {token["token"]: token["revokedAt"] for token in left["tokens"]}
    assert revoked[created["token"]] == "2025-10-09T08:53:20.000Z"
    assert revoked[site.project.tokens[0].token] is None


async def test_creation_asked_for_again_under_its_key_is_made_once(site: Site) -> None:
    async def ask(path: str, key: str, **body: object) -> Any:
        status, created = await site.api("POST", path, json=body or None, headers={"Idempotency-Key": key})
        assert status == 201
        return created

    first = await ask("/projects", "k", name="till")
    assert await ask("/projects", "k", name="till") == first
    assert (await ask("/projects", "other", name="till"))["id"] != first["id"]
    tokens = f"/projects/{first['id']}/tokens"
    second = await ask(tokens, "k")
    assert await ask(tokens, "k") == second
    assert len((await ask(tokens, "other"))["tokens"]) == 3
    _, listed = await site.api("GET", "/projects")
    assert sum(project["name"] == "till" for project in listed["projects"]) == 2


async def test_unknown_token_is_not_found(site: Site) -> None:
    status, _ = await site.api("DELETE", f"/projects/{site.project.id}/tokens/svc_pk_unknown")
    assert status == 404


async def test_projects_that_are_not_loaded_are_an_error_of_ours(site: Site) -> None:
    site.projects.is_loaded = False
    status, body = await site.api("GET", "/projects")
    assert (status, body) == (
        503,
        {"error": "internal", "details": [{"field": "", "message": "projects are not loaded yet"}]},
    )
    status, _ = await site.api("GET", "/projects/1")
    assert status == 503
