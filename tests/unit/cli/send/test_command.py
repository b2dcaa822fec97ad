"""`svc send` against an endpoint that counts its requests."""

import asyncio
import json
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer
from click.testing import CliRunner

from cli.__main__ import svc
from tests.edge_events import encoded


async def test_events_of_all_files_are_sent_and_counted(tmp_path: Path) -> None:
    sent: list[Any] = []

    async def take(request: web.Request) -> web.Response:
        events = json.loads(await request.read())["events"]
        sent.extend(events)
        return web.json_response({"accepted": len(events), "rejected": 0, "errors": []}, status=202)

    app = web.Application()
    app.router.add_post("/v1/events:batch", take)
    files = [tmp_path / "a", tmp_path / "b"]
    files[0].write_bytes(encoded() + b"\n" + encoded(colour="red"))
    files[1].write_bytes(encoded())
    async with TestServer(app) as server:
        words = ["send", "--token", "t", "--url", str(server.make_url("/")), "--json", *map(str, files)]
        command = ["--data-dir", str(tmp_path), *words]
        result = await asyncio.to_thread(CliRunner().invoke, svc, command)
    assert result.exit_code == 0, result.output
    assert (json.loads(result.stdout)["accepted"], len(sent)) == (3, 3)
    assert sent[1]["colour"] == "red"
