"""The API's answers about existing data conform to its OpenAPI document.

The generated calls are in `test_openapi_calls.py`.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from dashboard.api.openapi import document
from dashboard.api.operation import NoInput, Operation
from dashboard.api.routes import OPERATIONS
from tests.e2e.page_server import FULL, serving
from tests.unit.dashboard.sample import SHOWCASE, issue_of
from tests.unit.dashboard.site import ADMIN

# There is no check that all data that fits the schema is accepted: no schema can say that a query parses, or
# that a range begins before it ends.
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
PATHS = {
    "project": FULL,
    "issue": issue_of(SHOWCASE),
    "event": "latest",
    "key": "tier",
    "field": "release",
    "token": "none",
    "view": "none",
}


@pytest.fixture(scope="module")
def address(clickhouse_url: str) -> Iterator[str]:
    with serving(clickhouse_url) as started:
        yield started


schema = schemathesis.openapi.from_dict(document(OPERATIONS))


@pytest.mark.parametrize(
    "operation", OPERATIONS, ids=lambda operation: f"{operation.method} {operation.path}"
)
@pytest.mark.holds("contract 4")
def test_answers_about_what_exists_conform_to_the_document(operation: Operation, address: str) -> None:
    described = schema[f"/api/v1{operation.path}"][operation.method]
    known = {name: value for name, value in PATHS.items() if f"{{{name}}}" in operation.path}
    body: dict[str, Any] = {} if operation.body is NoInput else {"body": {}}
    case = described.Case(path_parameters=known, **body)
    response = case.call_and_validate(base_url=address, headers=ADMIN, timeout=120, checks=CHECKS)
    assert operation.method != "GET" or response.status_code == 200


def test_every_operation_is_described_once() -> None:
    described = document(OPERATIONS)
    names = [one["operationId"] for path in described["paths"].values() for one in path.values()]
    assert len(names) == len(set(names)) == len(OPERATIONS)
    assert described["openapi"] == "3.1.0"
