"""Every endpoint of the API answers every kind of error in the one shape of the contract, section 4."""

import re
from collections.abc import AsyncIterator
from io import BytesIO
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import ClientResponse

from dashboard.api.api_routes import OPERATIONS
from dashboard.api.operation import NoInput, Operation
from dashboard.http.paths import API
from schemas.errors import ProjectsUnavailable, WireError
from storage.errors import QueryTooExpensive, StorageUnavailable
from storage.read.execute import Executor, Limits
from storage.read.reader import A, ReadCall, Reader
from tests.integration.dashboard.store import Store
from tests.integration.dashboard.stored_site import StoredSite, stored_site
from tests.unit.dashboard import sample
from tests.unit.dashboard.sample import SHOWCASE, issue_of
from tests.unit.dashboard.site import ADMIN, NOW, NOWHERE, Site, running_site

CODES = {error.code for error in WireError}
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(store: Store) -> AsyncIterator[StoredSite]:
    """A dashboard of the sample for all tests here: an error changes nothing."""
    store.fill(NOW)
    async with stored_site(store, sample.PROJECT) as running:
        yield running


def names(operation: Operation) -> str:
    return f"{operation.method} {operation.path}"


def path_of(operation: Operation, site: Site, **given: str) -> str:
    values = {
        "project": site.project.id,
        "issue": issue_of(SHOWCASE),
        "event": "latest",
        "key": "tier",
        "field": "release",
    }
    values |= {
        "token": site.project.tokens[0].token,
        "view": "0000000000000001",
        "apiKey": "0000000000000001",
    } | given
    return API + re.sub(r"\{(\w+)\}", lambda match: values[match[1]], operation.path)


async def ask(site: Site, operation: Operation, query: dict[str, str]) -> ClientResponse:
    body = BODIES.get(names(operation))
    path = path_of(operation, site)
    return await site.client.request(operation.method, path, params=query, json=body, headers=ADMIN)


async def shape(answer: ClientResponse, status: int) -> dict[str, Any]:
    assert answer.status == status
    assert answer.content_type == "application/json"
    body: dict[str, Any] = await answer.json()
    assert body["error"] in CODES
    assert set(body) <= {"error", "details", "retryAfterMs"}
    for detail in body.get("details", []):
        assert set(detail) == {"field", "message"}
    assert "Traceback" not in str(body)
    return body


@pytest.mark.parametrize("operation", OPERATIONS, ids=names)
@pytest.mark.holds("contract 4")
async def test_without_credentials_every_operation_is_401(site: StoredSite, operation: Operation) -> None:
    answer = await site.client.request(operation.method, path_of(operation, site))
    assert await shape(answer, 401) == {"error": "unauthorized"}


BODIES: dict[str, dict[str, Any]] = {
    "PATCH /projects/{project}": {"name": "x"},
    "POST /projects/{project}/api-keys": {"name": "x", "scopes": ["read"]},
    "PUT /projects/{project}/grouping-rules": {"rules": []},
    "POST /projects/{project}/grouping-rules:test": {"rules": []},
    "PUT /projects/{project}/notification-rules": {"rules": []},
    "POST /projects/{project}/notification-rules:preview": {"rules": []},
    "POST /projects/{project}/views": {"name": "x", "query": ""},
    "PATCH /projects/{project}/views/{view}": {"name": "x"},
    "PATCH /issues/{issue}": {"status": "open"},
    "POST /projects/{project}/issues:bulk": {"issues": [issue_of(SHOWCASE)], "status": "open"},
    "POST /issues/{issue}/merge": {"issues": [issue_of(SHOWCASE)]},
    "POST /issues/{issue}/unmerge": {"fingerprints": [issue_of(SHOWCASE)]},
    "POST /issues/{issue}/comments": {"text": "x"},
    "POST /issues/{issue}/discard": {},
}


@pytest.mark.parametrize("operation", [o for o in OPERATIONS if "{project}" in o.path], ids=names)
async def test_unknown_project_is_404(site: StoredSite, operation: Operation) -> None:
    answer = await site.client.request(
        operation.method,
        path_of(operation, site, project="4"),
        headers=ADMIN,
        json=BODIES.get(names(operation)),
    )
    assert await shape(answer, 404) == {"error": "notFound"}


@pytest.mark.parametrize("operation", [o for o in OPERATIONS if "{issue}" in o.path], ids=names)
@pytest.mark.parametrize("issue", ["00000000000000ff", "1", "ZZZZZZZZZZZZZZZZ", "%F0%9F%92%A5"])
async def test_unknown_issue_is_404(site: StoredSite, operation: Operation, issue: str) -> None:
    answer = await site.client.request(
        operation.method,
        path_of(operation, site, issue=issue),
        headers=ADMIN,
        json=BODIES.get(names(operation)),
    )
    await shape(answer, 404)


@pytest.mark.parametrize("operation", [o for o in OPERATIONS if "{event}" in o.path], ids=names)
@pytest.mark.parametrize("event", ["newest", "019ee652-0000-7000-8000-000000000000", "x" * 36])
async def test_unknown_event_is_404(site: StoredSite, operation: Operation, event: str) -> None:
    answer = await site.client.request(operation.method, path_of(operation, site, event=event), headers=ADMIN)
    await shape(answer, 404)


@pytest.mark.parametrize(
    "operation", [o for o in OPERATIONS if "query" in o.query.__struct_fields__], ids=names
)
@pytest.mark.holds("contract 4 language")
async def test_query_that_does_not_parse_is_400_with_the_position(
    site: StoredSite, operation: Operation
) -> None:
    answer = await ask(site, operation, {"query": "a AND ("})
    body = await shape(answer, 400)
    [detail] = body["details"]
    assert detail["field"] == "query"
    assert re.search(r"position 7: expected", detail["message"])


BAD_PARAMETERS = [
    ("limit", "0"),
    ("limit", "2001"),
    ("limit", "many"),
    ("cursor", "not-a-cursor"),
    ("start", "yesterday"),
    ("start", "2026-01-01T00:00:00"),
    ("end", "1969-01-01T00:00:00Z"),
    ("sort", "colour"),
    ("interval", "year"),
    ("prefix", "x" * 201),
    ("query", "x" * 4001),
]


@pytest.mark.parametrize(
    ("operation", "name", "value"),
    [
        pytest.param(operation, name, value, id=f"{names(operation)}-{name}={value[:12]}")
        for operation in OPERATIONS
        for name, value in BAD_PARAMETERS
        if name in operation.query.__struct_fields__
    ],
)
@pytest.mark.holds("contract 4")
async def test_bad_parameter_is_400_and_named(
    site: StoredSite, operation: Operation, name: str, value: str
) -> None:
    answer = await ask(site, operation, {name: value})
    body = await shape(answer, 400)
    assert body["error"] == "validationFailed"
    assert body["details"][0]["field"] == name


@pytest.mark.parametrize(
    "operation", [o for o in OPERATIONS if "start" in o.query.__struct_fields__], ids=names
)
async def test_range_that_ends_before_it_starts_is_400(site: StoredSite, operation: Operation) -> None:
    given = {"start": "2026-01-02T00:00:00Z", "end": "2026-01-01T00:00:00Z"}
    answer = await ask(site, operation, given)
    await shape(answer, 400)


@pytest.mark.parametrize("operation", [o for o in OPERATIONS if o.body is not NoInput], ids=names)
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "application/json"),
        (b"{", "application/json"),
        (b"[]", "application/json"),
        (b'"\xff"', "application/json"),
        (b"[" * 100_000, "application/json"),
        (b'{"name":"x"}', "text/plain"),
        (b"name=x", "application/x-www-form-urlencoded"),
        (b'{"unknown":1,"name":"x","rules":[]}', "application/json"),
    ],
)
async def test_bad_body_is_400(site: StoredSite, operation: Operation, body: bytes, kind: str) -> None:
    answer = await site.client.request(
        operation.method, path_of(operation, site), data=body, headers=ADMIN | {"Content-Type": kind}
    )
    await shape(answer, 400)


async def test_body_past_the_limit_is_413(site: StoredSite) -> None:
    answer = await site.client.post(
        f"{API}/projects",
        data=BytesIO(b" " * 1_100_000),
        headers=ADMIN | {"Content-Type": "application/json"},
    )
    await shape(answer, 413)


@pytest.mark.parametrize(
    "path", ["/api/v1", "/api/v1/nothing", "/api/v2/projects", "/api/", "/api/v1/projects/1/x/y"]
)
async def test_unknown_path_is_404_for_who_may_ask(site: StoredSite, path: str) -> None:
    await shape(await site.client.get(path), 401)
    await shape(await site.client.get(path, headers=ADMIN), 404 if path.startswith(API) else 401)


@pytest.mark.parametrize("operation", OPERATIONS, ids=names)
@pytest.mark.holds("contract 4")
async def test_wrong_method_is_405_with_allow(site: StoredSite, operation: Operation) -> None:
    answer = await site.client.request("OPTIONS", path_of(operation, site), headers=ADMIN)
    await shape(answer, 405)
    assert operation.method in answer.headers["Allow"]


class Broken(Reader):
    """A reader whose every answer is `error`."""

    def __init__(self) -> None:
        super().__init__(Executor([NOWHERE], Limits()))
        self.error = Exception()

    async def read(self, call: ReadCall[A]) -> A:  # noqa: ARG002 - any
        raise self.error


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def broken() -> AsyncIterator[tuple[Site, Broken]]:
    reader = Broken()
    async with running_site(reader) as running:
        yield running, reader


# Uploads and deletions of source maps require what their query may have.
@pytest.mark.parametrize(
    "operation",
    [o for o in OPERATIONS if o.query.__struct_fields__ and o.method in {"GET", "POST"}],
    ids=names,
)
@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (StorageUnavailable("away"), 503, "internal"),
        (QueryTooExpensive("too many rows"), 400, "validationFailed"),
        (RuntimeError("secret detail"), 500, "internal"),
    ],
)
@pytest.mark.holds("contract 4")
async def test_error_below_is_said_in_the_same_shape(
    broken: tuple[Site, Broken], operation: Operation, error: Exception, status: int, code: str
) -> None:
    site, reader = broken
    reader.error = error
    answer = await ask(site, operation, {})
    body = await shape(answer, status)
    assert body["error"] == code
    assert "secret" not in str(body)
    assert ("Retry-After" in answer.headers) == (status == 503)
    if status == 503:
        assert body["details"] == [{"field": "", "message": "events can't be read right now: away"}]


async def test_projects_that_cannot_be_written_are_503(
    site: StoredSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise ProjectsUnavailable("Kafka is away")

    monkeypatch.setattr(site.projects, "write", fail)
    answer = await site.client.post(f"{API}/projects", json={"name": "x"}, headers=ADMIN)
    await shape(answer, 503)
    assert answer.headers["Retry-After"] == "2"
