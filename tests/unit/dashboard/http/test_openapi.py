"""The OpenAPI document says what the API does: asked by it, every answer conforms to it."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import schemathesis
from aiohttp import web
from hypothesis import HealthCheck, Phase, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from control.project_edits import create
from dashboard.api.routes import OPERATIONS
from dashboard.app import build_app, build_runner
from dashboard.dependencies import Dependencies
from dashboard.http.openapi import document
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
EVENT_PATHS = {"project": "11", "issue": f"{SHOWCASE:016x}", "event": "latest", "key": "tier"}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    project = msgspec.structs.replace(create("shop", now_ms=NOW), id=EVENT_PATHS["project"])
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


@schema.parametrize()
@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_answers_conform_to_the_document(case: Case[Any], address: str) -> None:
    # Half of the calls are about what exists, so that successes are seen as well as refusals.
    if len(str(case.query)) % 2:
        known = {name: EVENT_PATHS[name] for name in case.path_parameters if name in EVENT_PATHS}
        case.path_parameters.update(known)
    case.call_and_validate(base_url=address, headers=ADMIN, timeout=20, checks=CHECKS)


def test_every_operation_is_described_once() -> None:
    described = document(OPERATIONS)
    names = [one["operationId"] for path in described["paths"].values() for one in path.values()]
    assert len(names) == len(set(names)) == len(OPERATIONS)
    assert described["openapi"] == "3.1.0"
