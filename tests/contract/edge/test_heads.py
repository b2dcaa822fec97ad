"""Heads that are slow, endless or no HTTP: they are refused once, and cost nearly nothing."""

import asyncio
import gc
import json
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from edge.http.edge_server import EdgeConnection
from tests.contract.edge.live_edge import LiveEdge, live_edge
from tests.contract.edge.raw_http import hang_up, head, read_answer, request
from tests.edge_events import encoded
from tests.eventually import eventually

POST = b"POST /v1/events HTTP/1.1\r\nHost: x\r\n"
NOT_HTTP = {
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 50,
    "garbage": b"GARBAGE\r\n\r\n",
    "version": b"POST /v1/events HTTP/9.9\r\n\r\n",
    "length word": POST + b"Content-Length: nine\r\n\r\n",
    "two lengths": POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "negative": POST + b"Content-Length: -1\r\n\r\n",
    "header": POST + b"bad header\r\n\r\n",
    "smuggling": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    "target": b"POST /" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "long": POST + b"X: " + b"y" * 100_000 + b"\r\n\r\n",
    "many": POST + b"".join(b"X%d: y\r\n" % n for n in range(500)) + b"\r\n",
}


@pytest.mark.parametrize("sent", NOT_HTTP.values(), ids=NOT_HTTP)
async def test_malformed_http_is_400_in_json_without_a_traceback(
    edge: LiveEdge, sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    reader, writer = await edge.connect()
    writer.write(sent)
    status, body = await read_answer(reader)
    assert status == 400
    assert json.loads(body)["error"] == "validationFailed"
    assert json.loads(body)["details"][0]["field"] == "request"
    assert [record for record in caplog.records if record.exc_info] == []
    page = await edge.metrics_page()
    assert b'svc_edge_requests_total{endpoint="malformed",status="400"} 1.0' in page
    writer.close()


async def test_broken_chunks_are_400(edge: LiveEdge) -> None:
    reader, writer = await edge.connect()
    writer.write(head(edge, "Transfer-Encoding: chunked") + b"5\r\nabcde\r\nZZZ\r\n")
    status, body = await read_answer(reader)
    assert (status, json.loads(body)["error"]) == (400, "validationFailed")
    writer.close()


async def test_head_without_end_is_refused_once_and_leaves_nothing_to_collect(edge: LiveEdge) -> None:
    """The error of aiohttp's parser would keep the rest in cycles: 100 such connections took 1.7 GB."""
    gc.collect()
    gc.disable()
    try:
        _, writer = await edge.connect()
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 4_000_000)
        await eventually(lambda: edge.connections.total == 0)
        assert not [each for each in gc.get_objects() if isinstance(each, HttpProcessingError)]
        page = await edge.metrics_page()
        assert b'svc_edge_requests_total{endpoint="malformed",status="400"} 1.0' in page
        await hang_up(writer)
    finally:
        gc.enable()


def held(edge: LiveEdge, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """The lock that requests wait for before they are answered."""
    go, handle = asyncio.Event(), edge.app.handle

    async def wait(request: web.BaseRequest) -> web.StreamResponse:
        await go.wait()
        return await handle(request)

    monkeypatch.setattr(edge.app, "handle", wait)
    return go


async def arrived(edge: LiveEdge, writer: asyncio.StreamWriter, sent: bytes) -> None:
    """Send on one connection, and let the edge accept another one since."""
    writer.write(sent)
    await writer.drain()
    await another_comes_and_ends(edge)


async def another_comes_and_ends(edge: LiveEdge) -> None:
    _, other = await edge.connect()
    await eventually(lambda: edge.connections.total == 2)
    await hang_up(other)
    await eventually(lambda: edge.connections.total == 1)


async def test_of_much_that_follows_malformed_http_nearly_nothing_is_read(
    edge: LiveEdge, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, receive = list[int](), EdgeConnection.data_received

    def count(connection: EdgeConnection, data: bytes) -> None:
        sizes.append(len(data))
        receive(connection, data)

    monkeypatch.setattr(EdgeConnection, "data_received", count)
    go = held(edge, monkeypatch)
    reader, writer = await edge.connect()
    await arrived(edge, writer, request(edge, encoded()))
    writer.write(b"GARBAGE\r\n\r\n" + b"y" * 30_000_000)
    for _ in range(20):
        await another_comes_and_ends(edge)
    assert sum(sizes) < 1_000_000
    go.set()
    assert (await read_answer(reader))[0] == 202
    await hang_up(writer)


async def test_long_head_behind_a_request_that_is_served_is_refused_once(
    edge: LiveEdge, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = held(edge, monkeypatch)
    reader, writer = await edge.connect()
    await arrived(edge, writer, request(edge, encoded()))
    await arrived(edge, writer, b"GET /healthz HTTP/1.1\r\n")
    for number in range(12):
        await arrived(edge, writer, b"X%d: " % number + b"y" * 4000 + b"\r\n")
    go.set()
    assert (await read_answer(reader))[0] == 202
    assert await reader.read() == b""
    page = await edge.metrics_page()
    assert b'svc_edge_connections_ended_total{reason="long head"} 1.0' in page
    await hang_up(writer)


async def test_requests_of_a_packet_that_ends_in_malformed_http_are_answered_once_and_none_is_stored(
    edge: LiveEdge,
) -> None:
    reader, writer = await edge.connect()
    writer.write(3 * request(edge, encoded()) + b"GARBAGE\r\n\r\n")
    assert (await read_answer(reader))[0] == 400
    assert await reader.read() == b""
    assert edge.stored() == []
    await hang_up(writer)


@pytest.mark.parametrize(
    "sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\n"], ids=["silent", "half a head"]
)
async def test_head_that_takes_too_long_ends_its_connection(tmp_path: Path, sent: bytes) -> None:
    async with live_edge(tmp_path, head_seconds=0.3) as edge:
        reader, writer = await edge.connect()
        writer.write(sent)
        async with asyncio.timeout(60):
            assert await reader.read() == b""
        page = await edge.metrics_page()
        assert b'svc_edge_connections_ended_total{reason="slow head"} 1.0' in page
        await hang_up(writer)


async def test_later_head_that_takes_too_long_ends_its_connection_and_an_idle_one_stays(
    tmp_path: Path,
) -> None:
    async with live_edge(tmp_path, head_seconds=0.3) as edge:
        pairs = [await edge.connect() for _ in range(2)]
        for reader, writer in pairs:
            writer.write(request(edge, encoded()))
            assert (await read_answer(reader))[0] == 202
        (reader, writer), (idle_reader, idle_writer) = pairs
        writer.write(request(edge, encoded())[:50])
        async with asyncio.timeout(60):
            assert await reader.read() == b""
        idle_writer.write(request(edge, encoded()))
        assert (await read_answer(idle_reader))[0] == 202
        await hang_up(writer, idle_writer)


async def test_transfer_codings_other_than_chunked_are_400(edge: LiveEdge) -> None:
    reader, writer = await edge.connect()
    body = encoded()
    writer.write(
        head(edge, "Transfer-Encoding: gzip, chunked") + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    )
    status, answer = await read_answer(reader)
    assert (status, json.loads(answer)["details"][0]["field"]) == (400, "Transfer-Encoding")
    await hang_up(writer)
