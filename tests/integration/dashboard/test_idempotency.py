"""`Idempotency-Key` of every change: the same request takes effect once.

Another request under the key is refused and changes nothing.
"""

from typing import Any, NamedTuple

import pytest

from dashboard.api.api_routes import OPERATIONS
from dashboard.api.operation import Operation
from schemas.ids import hex64
from tests.integration.dashboard.stored_site import StoredSite
from tests.unit.dashboard.sample import issue_of

NOTIFICATION_RULE = {"name": "new", "causes": ["created"], "channels": ["mail"]}
RULE = {"name": "r", "match": "a", "discard": True}
OTHER, THIRD = issue_of(1), issue_of(2)


class Case(NamedTuple):
    """Two requests for an operation."""

    first: dict[str, Any]
    second: dict[str, Any]


CASES = {
    "POST /projects": Case({"name": "till"}, {"name": "stock"}),
    "PATCH /projects/{project}": Case({"name": "till"}, {"name": "stock"}),
    "PATCH /issues/{issue}": Case({"status": "resolved"}, {"status": "ignored"}),
    "POST /projects/{project}/issues:bulk": Case(
        {"issues": ["{issue}"], "status": "ignored"}, {"issues": ["{issue}"], "status": "resolved"}
    ),
    "POST /issues/{issue}/merge": Case({"issues": [OTHER]}, {"issues": [THIRD]}),
    "POST /issues/{issue}/unmerge": Case({"fingerprints": [hex64(1)]}, {"fingerprints": [hex64(2)]}),
    "POST /issues/{issue}/comments": Case({"text": "one"}, {"text": "two"}),
    "POST /issues/{issue}/discard": Case({"discard": True}, {"discard": False}),
    "PUT /projects/{project}/grouping-rules": Case({"rules": [RULE]}, {"rules": []}),
    "PUT /projects/{project}/notification-rules": Case({"rules": [NOTIFICATION_RULE]}, {"rules": []}),
    "POST /projects/{project}/views": Case({"name": "a", "query": "x"}, {"name": "b", "query": "x"}),
    "PATCH /projects/{project}/views/{view}": Case({"name": "a"}, {"name": "b"}),
}
WITHOUT_BODY = {
    "POST /projects/{project}/tokens",
    "DELETE /projects/{project}/tokens/{token}",
    "DELETE /projects/{project}/views/{view}",
}
OF_KEYS = {
    change
    for path in ("/api-keys", "/projects/{project}/api-keys")
    for change in (f"POST {path}", f"DELETE {path}/{{apiKey}}")
}
"""`tests/unit/dashboard/auth/test_keys.py` repeats them: a secret is in the first answer alone."""


def named(operation: Operation) -> str:
    return f"{operation.method} {operation.path}"


def test_every_change_takes_the_key() -> None:
    assert {named(one) for one in OPERATIONS if one.takes_key} == set(CASES) | WITHOUT_BODY | OF_KEYS


async def state(site: StoredSite) -> Any:
    """The effects of changes."""
    issues = (await site.api("GET", f"/projects/{site.project.id}/issues"))[1]
    return issues, site.projects.all(), list(site.commands.made)


@pytest.mark.usefixtures("sample_stored")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.holds("contract 4")
async def test_the_same_key_makes_a_change_once_and_no_other(site: StoredSite, name: str) -> None:
    project = f"/projects/{site.project.id}"
    issue = (await site.api("GET", f"{project}/issues"))[1]["issues"][0]["id"]
    view = (await site.api("POST", f"{project}/views", json={"name": "v", "query": ""}))[1]["id"]
    method, path = name.split(" ")
    path = path.replace("{project}", site.project.id).replace("{issue}", issue).replace("{view}", view)

    async def ask(body: dict[str, Any], key: str = "k") -> tuple[int, Any]:
        body = {field: [issue] if value == ["{issue}"] else value for field, value in body.items()}
        return await site.api(method, path, json=body, headers={"Idempotency-Key": key})

    if path.endswith("/unmerge"):
        assert (await site.api("POST", f"/issues/{issue}/merge", json={"issues": [OTHER, THIRD]}))[0] == 200
    first, second = CASES[name]
    first_answer = await ask(first)
    assert first_answer[0] in {200, 201}
    before = await state(site)
    assert await ask(first) == first_answer
    assert await state(site) == before
    status, body = await ask(second)
    assert (status, body["error"], body["details"][0]["field"]) == (409, "conflict", "Idempotency-Key")
    assert await state(site) == before
    assert (await ask(second, "another"))[0] == first_answer[0]


@pytest.mark.usefixtures("sample_stored")
@pytest.mark.holds("contract 4 bulk")
async def test_a_list_of_issues_is_a_part_of_the_request(site: StoredSite) -> None:
    listed = (await site.api("GET", f"/projects/{site.project.id}/issues"))[1]["issues"]
    one, other = (issue["id"] for issue in listed[:2])

    async def resolve(*issues: str) -> int:
        body = {"issues": issues, "status": "resolved"}
        path = f"/projects/{site.project.id}/issues:bulk"
        return (await site.api("POST", path, json=body, headers={"Idempotency-Key": "k"}))[0]

    assert [await resolve(one), await resolve(one), await resolve(other), await resolve(one, other)] == [
        200,
        200,
        409,
        409,
    ]
    assert {made.issue for made in site.commands.made} == {one}


@pytest.mark.usefixtures("sample_stored")
async def test_a_key_of_one_call_is_refused_by_another_of_the_same_project_or_issue(site: StoredSite) -> None:
    key, project = {"Idempotency-Key": "k"}, f"/projects/{site.project.id}"
    issue = (await site.api("GET", f"{project}/issues"))[1]["issues"][0]["id"]
    assert (await site.api("PATCH", project, json={"name": "x"}, headers=key))[0] == 200
    assert (await site.api("POST", f"{project}/tokens", headers=key))[0] == 409
    assert (await site.api("POST", f"/issues/{issue}/comments", json={"text": "a"}, headers=key))[0] == 201
    assert (await site.api("PATCH", f"/issues/{issue}", json={"status": "ignored"}, headers=key))[0] == 409
    assert [made.kind for made in site.commands.made] == ["comment"]


async def test_a_repeated_removal_under_a_key_is_answered_as_the_first(site: StoredSite) -> None:
    path = f"/projects/{site.project.id}/views"
    view = (await site.api("POST", path, json={"name": "v", "query": ""}))[1]["id"]
    key = {"Idempotency-Key": "k"}
    removed = [await site.api("DELETE", f"{path}/{view}", headers=key) for _ in range(2)]
    assert removed == [(200, {"views": []})] * 2
