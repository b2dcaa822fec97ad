"""A body that isn't the files asked for is the client's fault, and is never kept beyond its limits."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from dashboard.error_boundary import answer_errors
from dashboard.http.multipart import read_files

TYPE = "multipart/form-data; boundary=B"
END = b"--B--\r\n"
URL = "/api/v1/files"
Client = TestClient[web.Request, web.Application]


def part(head: bytes = b'Content-Disposition: form-data; name="map"', content: bytes = b"x") -> bytes:
    return b"--B\r\n" + head + b"\r\n\r\n" + content + b"\r\n"


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async def take(request: web.Request) -> web.Response:
        files = await read_files(request, ("map", "file"), 10, float(request.query.get("seconds", 60)))
        return web.json_response({name: [file.name, file.content.decode()] for name, file in files.items()})

    app = web.Application(middlewares=[answer_errors])
    app.router.add_put(URL, take)
    async with TestClient(TestServer(app)) as connected:
        yield connected


async def test_the_parts_are_read_by_their_names(client: Client) -> None:
    named = part(b'Content-Disposition: form-data; name="file"; filename="a.js"', b"y")
    answer = await client.put(URL, data=part() + named + END, headers={"Content-Type": TYPE})
    assert await answer.json() == {"map": ["", "x"], "file": ["a.js", "y"]}


BAD = {
    "two of one name": part() + part() + END,
    "another name": part() + part(b'Content-Disposition: form-data; name="more"') + END,
    "no name": part(b"X: y") + END,
    "parts in a part": part(b"Content-Type: multipart/mixed; boundary=C") + END,
    "a line that is no header": part(b"no colon") + END,
    "a long header": part(b"X: " + b"y" * 100_000) + END,
    "many headers": part(b"X: y\r\n" * 10_000) + END,
    "cut in a header": b"--B\r\nContent-Dis",
    "no end": part(),
    "another charset": part(b'Content-Disposition: form-data; name="_charset_"', b"c" * 99) + END,
    "too large": part(content=b"x" * 11) + END,
}


@pytest.mark.parametrize("body", BAD.values(), ids=BAD)
async def test_a_bad_body_is_refused(client: Client, body: bytes) -> None:
    answer = await client.put(URL, data=body, headers={"Content-Type": TYPE})
    assert answer.status in (400, 413)
    assert len((await answer.json())["details"]) == 1


async def test_content_that_is_not_compressed_as_it_says_is_refused(
    client: Client,
) -> None:
    headers = {"Content-Type": TYPE, "Content-Encoding": "gzip"}
    answer = await client.put(URL, data=b"0123456789", headers=headers, compress=False)
    assert (answer.status, len((await answer.json())["details"])) == (400, 1)


async def test_a_body_that_stops_is_given_up(client: Client) -> None:
    async def stopped() -> AsyncIterator[bytes]:
        yield part()
        await asyncio.Event().wait()

    answer = await client.put(f"{URL}?seconds=0", data=stopped(), headers={"Content-Type": TYPE})
    assert (await answer.json())["details"] == [{"field": "body", "message": "didn't arrive within 0 s"}]
