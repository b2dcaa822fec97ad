"""Unchanged content is not sent again, and a change made here is visible in the next response."""

import re

import pytest

from dashboard.api.api_routes import OPERATIONS
from dashboard.api.operation import Operation
from dashboard.http.responses import encode_tagged, matches_etag
from schemas.read_api import IssuePage
from tests.integration.dashboard.stored_site import StoredSite
from tests.unit.dashboard.sample import SHOWCASE, issue_of
from tests.unit.dashboard.site import ADMIN

READS = [operation for operation in OPERATIONS if operation.method == "GET"]
PATHS = {"issue": issue_of(SHOWCASE), "event": "latest", "key": "tier", "field": "release"}


def names(operation: Operation) -> str:
    return f"{operation.method} {operation.path}"


def path_of(operation: Operation, site: StoredSite) -> str:
    values = PATHS | {"project": site.project.id}
    return "/api/v1" + re.sub(r"\{(\w+)\}", lambda found: values[found[1]], operation.path)


@pytest.mark.usefixtures("sample_stored")
@pytest.mark.parametrize("operation", READS, ids=names)
async def test_every_read_is_304_without_a_body_while_nothing_changes(
    site: StoredSite, operation: Operation
) -> None:
    path = path_of(operation, site)
    first = await site.client.get(path, headers=ADMIN)
    assert first.status == 200
    tag = first.headers["ETag"]
    assert first.headers["Cache-Control"] == "private, no-cache"
    again = await site.client.get(path, headers=ADMIN | {"If-None-Match": f'"other", {tag}'})
    assert (again.status, await again.read()) == (304, b"")
    assert (again.headers["ETag"], again.headers["Cache-Control"]) == (tag, "private, no-cache")
    other = await site.client.get(path, headers=ADMIN | {"If-None-Match": 'W/"other"'})
    assert (other.status, await other.json()) == (200, await first.json())


@pytest.mark.usefixtures("sample_stored")
@pytest.mark.parametrize("operation", READS, ids=names)
async def test_the_head_of_every_read_is_that_of_get_without_the_body(
    site: StoredSite, operation: Operation
) -> None:
    whole = await site.client.get(path_of(operation, site), headers=ADMIN)
    head = await site.client.head(path_of(operation, site), headers=ADMIN)
    assert (head.status, await head.read()) == (200, b"")
    assert head.headers["ETag"] == whole.headers["ETag"]
    assert head.content_type == "application/json"


async def test_a_head_that_is_refused_has_the_status_alone(site: StoredSite) -> None:
    for path, headers, status in (("/api/v1/projects", {}, 401), ("/api/v1/projects/99/issues", ADMIN, 404)):
        answer = await site.client.head(path, headers=headers)
        assert (answer.status, await answer.read()) == (status, b"")


async def test_the_tag_of_a_page_ignores_its_cursor() -> None:
    (body, tag), (other_body, other_tag), (_, last_tag) = (
        encode_tagged(IssuePage([], cursor)) for cursor in ("a", "b", None)
    )
    assert tag == other_tag != last_tag
    assert body != other_body


@pytest.mark.parametrize(
    ("given", "known"),
    [
        ([], False),
        (["*"], True),
        (['W/"a"'], True),
        (['"a"'], True),
        (['"b"', 'W/"c" ,W/"a"'], True),
        (["a"], False),
        (['W/"b"'], False),
        ([""], False),
    ],
)
def test_tags_are_compared_weakly_and_in_lists(given: list[str], known: bool) -> None:
    assert matches_etag(given, 'W/"a"') is known
