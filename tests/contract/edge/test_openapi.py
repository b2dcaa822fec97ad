"""The OpenAPI document (3.1) and schemathesis, which reads it and tries the live edge."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from edge.http.ingest_openapi import document
from schemas.errors import WireError
from schemas.event import Event
from tests.contract.edge.live_edge import LiveEdge, live_edge


class Background:
    """A live edge in a separate thread, for clients that block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        assert self._started.wait(60)

    async def _serve(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        async with live_edge(self._folder) as self.edge:
            self.edge.project = self.edge.add_project("9", rate_limit_per_minute=1_000_000)
            self._started.set()
            await self._end.wait()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(60)


@pytest.fixture(scope="module")
def background(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveEdge]:
    running = Background(tmp_path_factory.mktemp("edge"))
    yield running.edge
    running.close()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_schemathesis_finds_nothing(background: LiveEdge, mode: str, tmp_path: Path) -> None:
    """Every check that it has, on data that fits the document and on data that doesn't; exit status 0 is no finding."""
    command = [
        sys.executable, "-P", "-m", "schemathesis.cli", "run", background.url + "/v1/openapi.json",
        "--header", f"Authorization: {background.headers()['Authorization']}",
        "--checks", "all", "--mode", mode, "--phases", "examples,coverage,fuzzing",
        "--max-examples", "20", "--seed", "1", "--suppress-health-check", "all", "--no-color",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_document_names_both_endpoints_with_every_answer() -> None:

    paths = json.loads(document())["paths"]
    assert set(paths) == {"/v1/events", "/v1/events:batch"}
    for path in paths.values():
        statuses = set(path["post"]["responses"])
        declared = {"202", *(str(f.status) for f in WireError if f.status in {400, 401, 413, 429, 500, 503})}
        assert statuses == declared


def test_document_is_made_of_the_structs() -> None:

    found = json.loads(document())["components"]["schemas"]
    assert set(found["Event"]["properties"]) == set(Event.__struct_encode_fields__)
    assert found["Event"]["properties"]["breadcrumbs"]["anyOf"][0]["maxItems"] == 100


async def test_document_is_served_to_anyone(edge: LiveEdge) -> None:
    answer = await edge.post(b"", "/v1/openapi.json", headers={}, method="GET")
    assert answer.status == 200
    assert answer.body == document()
    assert answer.json["openapi"].startswith("3.1")
