"""The OpenAPI document says what the API does: answers about what exists conform to it. Generated calls are the contract tests'."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import schemathesis
from aiohttp import web
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from control.project_edits import create
from dashboard.api.openapi import document
from dashboard.api.operation import NoInput, Operation
from dashboard.api.routes import OPERATIONS
from dashboard.app import build_app, build_runner
from dashboard.dependencies import Dependencies
from tests.memory import MemoryChanges, MemoryProjects, MemoryReader
from tests.unit.dashboard.sample import SHOWCASE, fill
from tests.unit.dashboard.site import ADMIN, NOW, SETTINGS

# Not that whatever fits the schema is accepted: that a query parses, or a range begins before it ends, no schema can say.
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
PATHS = {
    "project": "11",
    "issue": f"{SHOWCASE:016x}",
    "event": "latest",
    "key": "tier",
    "token": "none",
    "view": "none",
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    project = msgspec.structs.replace(create("shop", now_ms=NOW), id=PATHS["project"])
    reader = MemoryReader(lambda: NOW)
    fill(reader, project.number, NOW)
    loop = asyncio.new_event_loop()
    parts = Dependencies(reader, MemoryProjects(project), lambda: NOW, MemoryChanges(reader))
    runner = build_runner(build_app(SETTINGS, parts))

    async def start() -> str:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}"

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield asyncio.run_coroutine_threadsafe(start(), loop).result(30)
    asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(30)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()


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
    response = case.call_and_validate(base_url=address, headers=ADMIN, timeout=20, checks=CHECKS)
    assert operation.method != "GET" or response.status_code == 200


def test_every_operation_is_described_once() -> None:
    described = document(OPERATIONS)
    names = [one["operationId"] for path in described["paths"].values() for one in path.values()]
    assert len(names) == len(set(names)) == len(OPERATIONS)
    assert described["openapi"] == "3.1.0"
