"""The proxy of docs/operate/cells.md: each token's events reach the edge of its cell, as they were sent."""

import gzip
import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path

import aiohttp
import pytest

from local.ports import free_port
from schemas.ids import new_token
from tests.contract.edge.live_edge import LiveEdge, live_edge
from tests.edge_events import encoded
from tests.eventually import eventually
from tests.programs import program

PAGE = Path(__file__).parents[3] / "docs" / "operate" / "cells.md"


def configuration(folder: Path, port: int, first: LiveEdge, second: LiveEdge) -> str:
    """What the page says, with the addresses of this machine."""
    text = PAGE.read_text(encoding="utf-8").partition("```nginx\n")[2].partition("```")[0]
    for there, here in (
        ("cell-a.example.org:8080", f"127.0.0.1:{first.port}"),
        ("cell-b.example.org:8080", f"127.0.0.1:{second.port}"),
        ("/etc/nginx/cells.map", str(folder / "cells.map")),
        ("listen 8000;", f"listen 127.0.0.1:{port};"),
    ):
        assert there in text
        text = text.replace(there, here)
    paths = "".join(
        f"{name}_temp_path {folder / name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return f"daemon off; pid {folder / 'pid'};\n" + text.replace(
        "http {", f"http {{ access_log off; {paths}", 1
    )


@contextmanager
def proxy(folder: Path, port: int, first: LiveEdge, second: LiveEdge) -> Iterator[None]:
    """nginx in front of two cells."""
    (folder / "nginx.conf").write_text(configuration(folder, port, first, second))
    tokens = {token.token for token in second.project.tokens}
    (folder / "cells.map").write_text("".join(f"{token} cell_b;\n" for token in tokens))
    command = [program("nginx"), "-e", str(folder / "error.log"), "-p", str(folder)]
    process = subprocess.Popen([*command, "-c", str(folder / "nginx.conf")])

    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture
async def cells(tmp_path: Path) -> AsyncIterator[tuple[LiveEdge, LiveEdge]]:
    folders = tmp_path / "a", tmp_path / "b"
    for folder in folders:
        folder.mkdir()
    async with live_edge(folders[0]) as first, live_edge(folders[1]) as second:
        yield first, second


async def test_each_token_reaches_its_cell(cells: tuple[LiveEdge, LiveEdge], tmp_path: Path) -> None:
    first, second = cells
    port = free_port()
    url = f"http://127.0.0.1:{port}"

    async def post(path: str, body: bytes, **headers: str) -> int:
        async with session.post(url + path, data=BytesIO(body), headers=headers) as answer:
            return answer.status

    async def listens() -> bool:
        with suppress(aiohttp.ClientConnectorError):
            async with session.options(url + "/v1/events") as answer:
                return answer.status == 204
        return False

    with proxy(tmp_path, port, first, second):
        async with aiohttp.ClientSession() as session:
            await eventually(listens)
            assert await post("/v1/events", encoded(), **first.headers()) == 202
            batch = gzip.compress(json.dumps({"events": [json.loads(encoded()) for _ in range(7)]}).encode())
            headers = second.headers(Content_Encoding="gzip")
            # A scheme is written in any case.
            headers["Authorization"] = headers["Authorization"].replace("Bearer", "bearer")
            assert await post("/v1/events:batch", batch, **headers) == 202
            await eventually(lambda: (len(first.stored()), len(second.stored())) == (1, 7))
            unknown = first.headers() | {"Authorization": f"Bearer {new_token()}"}
            assert await post("/v1/events", encoded(), **unknown) == 401
            assert await post("/v1/events", encoded(), **first.headers(Authorization="")) == 401
            assert await post("/v1/events", b"x" * (2 << 20), **second.headers()) == 413
            assert (len(first.stored()), len(second.stored())) == (1, 7)
