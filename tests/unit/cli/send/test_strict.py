"""`svc send --strict` against an endpoint that counts what it gets."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from click.testing import CliRunner, Result

from cli.__main__ import svc
from tests.edge_events import encoded


class Intake:
    """Accepts every batch."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        events = json.loads(await request.read())["events"]
        self.events += events
        return web.json_response({"accepted": len(events), "rejected": 0, "errors": []}, status=202)


@pytest.fixture
async def intake() -> AsyncIterator[Intake]:
    made, app = Intake(), web.Application()
    app.router.add_post("/v1/events:batch", made.handle)
    server = TestServer(app)
    await server.start_server()
    made.url = str(server.make_url("/"))
    yield made
    await server.close()


async def run_send(intake: Intake, folder: Path, *words: str, **files: bytes) -> Result:
    paths = []
    for name, text in files.items():
        (folder / name).write_bytes(text)
        paths.append(str(folder / name))
    arguments = ["--data-dir", str(folder), "send", "--token", "t", "--url", intake.url, *words, *paths]
    return await asyncio.to_thread(CliRunner().invoke, svc, arguments)


RIGHT, WRONG = encoded(), encoded(tag={}, user={"email": "a@b.c"})


async def test_unknown_fields_of_all_files_are_named_and_nothing_is_sent(
    intake: Intake, tmp_path: Path
) -> None:
    files = {"a": RIGHT + b"\n" + WRONG, "b": WRONG + b"\nno json\n"}
    result = await run_send(intake, tmp_path, "--strict", **files)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "tag: unknown field in 2 events, first in event 1; did you mean tags?",
        "user.email: unknown field in 2 events, first in event 1",
        "nothing was sent",
    ]
    assert intake.events == []


async def test_unknown_fields_are_json_where_counts_are(intake: Intake, tmp_path: Path) -> None:
    result = await run_send(intake, tmp_path, "--strict", "--json", a=WRONG)
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {
        "unknownFields": [
            {"field": "tag", "nearest": "tags", "first": 0, "events": 1},
            {"field": "user.email", "nearest": None, "first": 0, "events": 1},
        ]
    }


async def test_events_without_unknown_fields_are_sent(intake: Intake, tmp_path: Path) -> None:
    result = await run_send(intake, tmp_path, "--strict", a=RIGHT + b"\n" + encoded())
    assert (result.exit_code, len(intake.events)) == (0, 2), result.output


async def test_unknown_fields_are_sent_without_strict(intake: Intake, tmp_path: Path) -> None:
    result = await run_send(intake, tmp_path, a=WRONG)
    assert (result.exit_code, len(intake.events)) == (0, 1), result.output


async def test_what_can_be_read_once_is_refused(intake: Intake, tmp_path: Path) -> None:
    result = await run_send(intake, tmp_path, "--strict", "/dev/null")
    assert result.exit_code == 2
    assert "reads a file twice" in result.stderr
