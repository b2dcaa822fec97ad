"""The API conforms to its OpenAPI document in its answers about existing data and to generated calls."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from aiohttp import encode_basic_auth
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from dashboard.api.api_routes import OPERATIONS
from dashboard.api.openapi_document import document
from dashboard.api.operation import NoInput, Operation
from tests.e2e.page_server import FULL, PASSWORD, serving
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
# No schema can say that a range begins before it ends, that a rule sets something, or that a name is not taken yet.
BEYOND_SCHEMAS = "positive_data_acceptance"
PATHS = {
    "project": FULL,
    "issue": issue_of(SHOWCASE),
    "event": "latest",
    "key": "tier",
    "field": "release",
    "token": "none",
    "apiKey": "none",
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
def test_answers_about_existing_objects_conform_to_the_document(operation: Operation, address: str) -> None:
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


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_schemathesis_finds_nothing(address: str, mode: str, tmp_path: Path) -> None:
    """It calls every operation with data that fits the schema and with data that doesn't."""
    command = [
        sys.executable, "-P", "-m", "schemathesis.cli", "run", f"{address}/api/v1/openapi.json",
        "--header", f"Authorization: {encode_basic_auth('admin', PASSWORD)}",
        "--checks", "all", "--exclude-checks", BEYOND_SCHEMAS, "--mode", mode, "--phases", "coverage,fuzzing",
        "--max-examples", "8", "--seed", "1", "--suppress-health-check", "all", "--no-color",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout[-16000:] + done.stderr[-2000:]
