"""Clients that are slow, silent, many, rude or not speaking HTTP: the edge answers the others."""

import asyncio
import gc
import json
import resource
from contextlib import suppress
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from edge.http.server import EdgeConnection
from schemas.ids import new_token
from schemas.projects import Token
from tests.contract.edge.live_edge import MOMENT, LiveEdge, live_edge
from tests.edge_events import encoded
from tests.eventually import eventually


def request(edge: LiveEdge, body: bytes, path: str = "/v1/events", extra: str = "") -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in edge.headers().items()]
    return ("\r\n".join(lines) + "\r\n" + extra + "\r\n").encode() + body


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    async with asyncio.timeout(10):
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        return int(head[9:12]), await reader.readexactly(length)


async def hang_up(*writers: asyncio.StreamWriter) -> None:
    """Go away without a word."""
    for writer in writers:
        writer.transport.abort()
    for writer in writers:
        with suppress(ConnectionError):
            await writer.wait_closed()


async def test_pipelined_requests_are_answered_in_order(edge: LiveEdge) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", edge.port)
    bad = encoded(kind="x")
    writer.write(b"".join(request(edge, encoded() if n % 2 == 0 else bad) for n in range(50)))
    statuses = [(await read_answer(reader))[0] for _ in range(50)]
    assert statuses == [202, 400] * 25
    writer.close()


async def test_half_closed_request_is_answered(edge: LiveEdge) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", edge.port)
    writer.write(request(edge, encoded()))
    writer.write_eof()
    assert await read_answer(reader) == (202, b"{}")
    writer.close()


async def test_slow_body_is_given_up_and_others_are_served_meanwhile(tmp_path: Path) -> None:
    async with live_edge(tmp_path, body_timeout=0.5) as edge:
        reader, writer = await asyncio.open_connection("127.0.0.1", edge.port)
        writer.write(request(edge, encoded())[:-10])
        assert (await edge.post(encoded())).status == 202
        async with asyncio.timeout(10):
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
        writer.close()
        assert (await edge.post(encoded())).status == 202
        page = (await edge.post(b"", "/metrics", method="GET")).body
        assert b'outcome="unavailable",project="1",reason="slow body",sdk="svc-js"} 1.0' in page


async def test_client_that_drips_its_body_is_served_when_it_ends_in_time(edge: LiveEdge) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", edge.port)
    whole = request(edge, encoded())
    for offset in range(0, len(whole), 40):
        writer.write(whole[offset : offset + 40])
        await writer.drain()
        await asyncio.sleep(0)
    assert await read_answer(reader) == (202, b"{}")
    writer.close()


async def test_client_that_goes_away_in_the_middle_costs_nothing(edge: LiveEdge) -> None:
    for _ in range(20):
        _, writer = await asyncio.open_connection("127.0.0.1", edge.port)
        writer.write(request(edge, encoded())[:-10])
        await writer.drain()
        await hang_up(writer)
    assert (await edge.post(encoded())).status == 202
    assert len(edge.stored()) == 1


async def test_client_that_goes_away_before_its_answer_takes_no_other_with_it(edge: LiveEdge) -> None:
    writers = []
    for _ in range(10):
        _, writer = await asyncio.open_connection("127.0.0.1", edge.port)
        writer.write(request(edge, encoded()))
        await writer.drain()
        writers.append(writer)
    await hang_up(*writers[::2])
    assert (await edge.post(encoded())).status == 202
    await eventually(lambda: len(edge.stored()) >= 6)
    await hang_up(*writers[1::2])


async def test_thousands_of_idle_connections_leave_the_edge_serving(edge: LiveEdge) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(5000, hard // 2 - 200)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    writers = []
    for _ in range(count // 100):
        pairs = await asyncio.gather(*(asyncio.open_connection("127.0.0.1", edge.port) for _ in range(100)))
        writers += [writer for _, writer in pairs]
    assert count >= 1000
    assert (await edge.post(encoded())).status == 202
    await hang_up(*writers)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 50,
        b"GARBAGE\r\n\r\n",
        b"POST /v1/events HTTP/9.9\r\n\r\n",
        b"POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Length: nine\r\n\r\n",
        b"POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/events HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n",
        b"POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST /" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /v1/events HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"POST /v1/events HTTP/1.1\r\nHost: x\r\n"
        + b"".join(b"X%d: y\r\n" % n for n in range(500))
        + b"\r\n",
    ],
    ids=[
        "tls",
        "garbage",
        "version",
        "length word",
        "two lengths",
        "negative",
        "header",
        "smuggling",
        "target",
        "long",
        "many",
    ],
)
async def test_what_is_no_http_is_400_in_json_without_a_traceback(
    edge: LiveEdge, sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", edge.port)
    writer.write(sent)
    status, body = await read_answer(reader)
    assert status == 400
    assert json.loads(body)["error"] == "validationFailed"
    assert json.loads(body)["details"][0]["field"] == "request"
    assert [record for record in caplog.records if record.exc_info] == []
    page = (await edge.post(b"", "/metrics", method="GET")).body
    assert b'svc_edge_requests_total{endpoint="malformed",status="400"} 1.0' in page
    writer.close()


async def test_unfinished_bodies_together_are_bounded(edge: LiveEdge) -> None:
    edge.body_budget._max_bytes = 300_000
    body = encoded(pad="x" * 100_000)
    slow = []
    for _ in range(2):
        _, writer = await asyncio.open_connection("127.0.0.1", edge.port)
        writer.write(request(edge, body)[:-10])
        slow.append(writer)
    await eventually(lambda: edge.body_budget.total > 180_000)
    reader, writer = await asyncio.open_connection("127.0.0.1", edge.port)
    writer.write(request(edge, encoded(pad="x" * 150_000))[:-10])
    assert await read_answer(reader) == (503, b'{"error":"internal"}')
    assert (await edge.post(encoded())).status == 202
    await hang_up(writer, *slow)
    await eventually(lambda: edge.body_budget.total == 0)


async def test_token_that_holds_its_share_is_refused_and_others_are_served(edge: LiveEdge) -> None:
    edge.body_budget._max_token_bytes = 300_000
    slow = []
    for _ in range(2):
        _, writer = await asyncio.open_connection("127.0.0.1", edge.port)
        writer.write(request(edge, encoded(pad="x" * 100_000))[:-10])
        slow.append(writer)
    await eventually(lambda: edge.body_budget.total > 180_000)
    more = encoded(pad="x" * 150_000)
    answer = await edge.post(more)
    assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
    assert json.loads(answer.body) == {"error": "rateLimited", "retryAfterMs": 1000}
    assert (await edge.post(more, headers=edge.headers(edge.lenient))).status == 202
    assert (await edge.post(encoded())).status == 202
    page = (await edge.post(b"", "/metrics", method="GET")).body
    assert b'outcome="rateLimited",project="1",reason="unanswered bodies",sdk="svc-js"} 1.0' in page
    await hang_up(*slow)
    await eventually(lambda: edge.body_budget.total == 0)
    assert (await edge.post(more)).status == 202


async def test_declared_length_beyond_the_tokens_share_is_refused_before_the_body_is_sent(
    edge: LiveEdge,
) -> None:
    edge.body_budget._max_token_bytes = 50_000
    reader, writer = await asyncio.open_connection("127.0.0.1", edge.port)
    writer.write(request(edge, b" " * 60_000, extra="Expect: 100-continue\r\n").removesuffix(b" " * 60_000))
    status, body = await read_answer(reader)
    assert (status, json.loads(body)["error"]) == (429, "rateLimited")
    await hang_up(writer)


async def test_chunked_body_is_held_as_it_comes(edge: LiveEdge) -> None:
    edge.body_budget._max_token_bytes = 50_000
    reader, writer = await asyncio.open_connection("127.0.0.1", edge.port)
    lines = ["POST /v1/events HTTP/1.1", "Host: x", "Transfer-Encoding: chunked"]
    lines += [f"{name}: {value}" for name, value in edge.headers().items()]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode() + b"EA60\r\n" + b"x" * 60_000 + b"\r\n")
    status, body = await read_answer(reader)
    assert (status, json.loads(body)["error"]) == (429, "rateLimited")
    writer.close()
    await eventually(lambda: edge.body_budget.total == 0)


async def test_connections_that_end_leave_nothing_to_collect(edge: LiveEdge) -> None:
    def connections() -> int:
        # By type: isinstance() reads __class__, which calls into objects that only stand for others.
        return sum(type(each) is EdgeConnection for each in gc.get_objects())

    gc.collect()
    before = connections()
    gc.disable()
    try:
        for _ in range(5):
            reader, writer = await asyncio.open_connection("127.0.0.1", edge.port)
            writer.write(request(edge, encoded()))
            assert (await read_answer(reader))[0] == 202
            await hang_up(writer)
        await eventually(lambda: connections() <= before)
    finally:
        gc.enable()


async def test_broken_chunks_are_400(edge: LiveEdge) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", edge.port)
    lines = ["POST /v1/events HTTP/1.1", "Host: x", "Transfer-Encoding: chunked"]
    lines += [f"{name}: {value}" for name, value in edge.headers().items()]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode() + b"5\r\nabcde\r\nZZZ\r\n")
    status, body = await read_answer(reader)
    assert (status, json.loads(body)["error"]) == (400, "validationFailed")
    writer.close()


async def test_flood_of_refusals_is_answered_at_a_pace_and_others_at_once(
    edge: LiveEdge, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[tuple[str, float]] = []

    def wait_seconds(token: str) -> float:
        pauses.append((token, 0.01))
        return 0.01

    monkeypatch.setattr(edge.throttle, "wait_seconds", wait_seconds)
    unknown = edge.headers(Authorization="Bearer nobody")
    body = encoded(pad="x" * 300_000)
    for _ in range(2):
        assert (await edge.post(body, headers=unknown)).status == 401
    assert (await edge.post(encoded(kind="x"))).status == 400
    assert [token for token, _ in pauses] == ["", "", edge.project.tokens[0].token]
    assert (await edge.post(encoded())).status == 202
    assert len(pauses) == 3


async def test_head_without_end_is_refused_once_and_leaves_nothing_to_collect(edge: LiveEdge) -> None:
    """What aiohttp's parser says of the rest would keep the rest in cycles: 100 such connections took 1.7 GB."""
    gc.collect()
    gc.disable()
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", edge.port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 4_000_000)
        await eventually(lambda: edge.connections.total == 0)
        assert not [each for each in gc.get_objects() if isinstance(each, HttpProcessingError)]
        page = (await edge.post(b"", "/metrics", method="GET")).body
        assert b'svc_edge_requests_total{endpoint="malformed",status="400"} 1.0' in page
        await hang_up(writer)
    finally:
        gc.enable()


def held(edge: LiveEdge, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """What requests wait for before they are answered."""
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
    _, other = await asyncio.open_connection("127.0.0.1", edge.port)
    await eventually(lambda: edge.connections.total == 2)
    await hang_up(other)
    await eventually(lambda: edge.connections.total == 1)


async def test_what_follows_malformed_http_is_not_read_while_the_request_before_is_served(
    edge: LiveEdge, monkeypatch: pytest.MonkeyPatch
) -> None:
    def errors() -> int:
        return sum(isinstance(each, HttpProcessingError) for each in gc.get_objects())

    go = held(edge, monkeypatch)
    gc.collect()
    before = errors()
    reader, writer = await asyncio.open_connection("127.0.0.1", edge.port)
    await arrived(edge, writer, request(edge, encoded()))
    for _ in range(5):
        await arrived(edge, writer, b"GARBAGE\r\n\r\n")
    assert errors() == before + 1
    go.set()
    assert [(await read_answer(reader))[0] for _ in range(2)] == [202, 400]
    assert await reader.read() == b""
    await hang_up(writer)


async def test_of_much_that_follows_malformed_http_nearly_nothing_is_read(
    edge: LiveEdge, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, receive = list[int](), EdgeConnection.data_received

    def count(connection: EdgeConnection, data: bytes) -> None:
        sizes.append(len(data))
        receive(connection, data)

    monkeypatch.setattr(EdgeConnection, "data_received", count)
    go = held(edge, monkeypatch)
    reader, writer = await asyncio.open_connection("127.0.0.1", edge.port)
    await arrived(edge, writer, request(edge, encoded()))
    writer.write(b"GARBAGE\r\n\r\n" + b"y" * 30_000_000)
    for _ in range(20):
        _, other = await asyncio.open_connection("127.0.0.1", edge.port)
        await eventually(lambda: edge.connections.total == 2)
        await hang_up(other)
        await eventually(lambda: edge.connections.total == 1)
    assert sum(sizes) < 1_000_000
    go.set()
    assert (await read_answer(reader))[0] == 202
    await hang_up(writer)


async def test_long_head_behind_a_request_that_is_served_is_refused_once(
    edge: LiveEdge, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = held(edge, monkeypatch)
    reader, writer = await asyncio.open_connection("127.0.0.1", edge.port)
    await arrived(edge, writer, request(edge, encoded()))
    await arrived(edge, writer, b"GET /healthz HTTP/1.1\r\n")
    for number in range(12):
        await arrived(edge, writer, b"X%d: " % number + b"y" * 4000 + b"\r\n")
    go.set()
    assert (await read_answer(reader))[0] == 202
    assert await reader.read() == b""
    page = (await edge.post(b"", "/metrics", method="GET")).body
    assert b'svc_edge_connections_ended_total{reason="long head"} 1.0' in page
    await hang_up(writer)


async def test_requests_of_a_packet_that_ends_in_malformed_http_are_answered_once_and_none_is_stored(
    edge: LiveEdge,
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", edge.port)
    writer.write(3 * request(edge, encoded()) + b"GARBAGE\r\n\r\n")
    assert (await read_answer(reader))[0] == 400
    assert await reader.read() == b""
    assert edge.stored() == []
    await hang_up(writer)


async def test_head_of_many_small_lines_is_bounded_too(edge: LiveEdge) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", edge.port)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
    with suppress(ConnectionError):
        for number in range(20):
            writer.write(b"X%d: " % number + b"y" * 4000 + b"\r\n")
            await writer.drain()
            await asyncio.sleep(0)
        assert await reader.read() == b""
    page = (await edge.post(b"", "/metrics", method="GET")).body
    assert b'svc_edge_connections_ended_total{reason="long head"} 1.0' in page
    await hang_up(writer)


@pytest.mark.parametrize(
    "sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\n"], ids=["silent", "half a head"]
)
async def test_head_that_takes_too_long_ends_its_connection(tmp_path: Path, sent: bytes) -> None:
    async with live_edge(tmp_path, head_seconds=0.3) as edge:
        reader, writer = await asyncio.open_connection("127.0.0.1", edge.port)
        writer.write(sent)
        async with asyncio.timeout(10):
            assert await reader.read() == b""
        page = (await edge.post(b"", "/metrics", method="GET")).body
        assert b'svc_edge_connections_ended_total{reason="slow head"} 1.0' in page
        await hang_up(writer)


async def test_later_head_that_takes_too_long_ends_its_connection_and_an_idle_one_stays(
    tmp_path: Path,
) -> None:
    async with live_edge(tmp_path, head_seconds=0.3) as edge:
        pairs = [await asyncio.open_connection("127.0.0.1", edge.port) for _ in range(2)]
        for reader, writer in pairs:
            writer.write(request(edge, encoded()))
            assert (await read_answer(reader))[0] == 202
        (reader, writer), (idle_reader, idle_writer) = pairs
        writer.write(request(edge, encoded())[:50])
        async with asyncio.timeout(10):
            assert await reader.read() == b""
        idle_writer.write(request(edge, encoded()))
        assert (await read_answer(idle_reader))[0] == 202
        await hang_up(writer, idle_writer)


async def test_body_has_a_time_of_its_own(tmp_path: Path) -> None:
    async with live_edge(tmp_path, head_seconds=0.2) as edge:
        reader, writer = await asyncio.open_connection("127.0.0.1", edge.port)
        whole = request(edge, encoded())
        writer.write(whole[:-10])
        _, silent = await asyncio.open_connection("127.0.0.1", edge.port)
        await eventually(lambda: edge.connections.total == 1)
        writer.write(whole[-10:])
        assert (await read_answer(reader))[0] == 202
        await hang_up(writer, silent)


@pytest.mark.parametrize(("most", "by_address", "reason"), [(3, 3, b"total"), (100, 3, b"address")])
async def test_connections_beyond_a_limit_are_closed_until_others_end(
    edge: LiveEdge, most: int, by_address: int, reason: bytes
) -> None:
    edge.connections._most, edge.connections._most_by_address = most, by_address
    held = [await asyncio.open_connection("127.0.0.1", edge.port) for _ in range(3)]
    reader, writer = await asyncio.open_connection("127.0.0.1", edge.port)
    with suppress(ConnectionResetError):
        assert await reader.read() == b""
    await hang_up(writer, held.pop()[1])
    await eventually(lambda: edge.connections.total == 2)
    assert (await edge.post(encoded())).status == 202
    page = (await edge.post(b"", "/metrics", method="GET")).body
    assert b'svc_edge_connections_ended_total{reason="%s"} 1.0' % reason in page
    await hang_up(*[writer for _, writer in held])


async def test_declared_bodies_that_never_come_leave_the_memory_to_others(edge: LiveEdge) -> None:
    edge.body_budget._max_bytes = 2_000_000
    project = edge.add_project("3", tokens=tuple(Token(new_token(), MOMENT) for _ in range(9)))
    begun = []
    for token in project.tokens:
        _, writer = await asyncio.open_connection("127.0.0.1", edge.port)
        headers = edge.headers(project) | {"Authorization": f"Bearer {token.token}"}
        lines = ["POST /v1/events HTTP/1.1", "Host: x", "Content-Length: 1000000"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode() + b" " * 1000)
        begun.append(writer)
    await eventually(lambda: edge.body_budget.total == 9000)
    assert (await edge.post(encoded(pad="x" * 900_000))).status == 202
    await hang_up(*begun)


async def test_bodies_held_open_give_way_to_a_token_that_holds_less(edge: LiveEdge) -> None:
    edge.body_budget._max_bytes = 1_000_000
    held = []
    for _ in range(3):
        reader, writer = await asyncio.open_connection("127.0.0.1", edge.port)
        writer.write(request(edge, encoded(pad="x" * 300_000))[:-10])
        held.append((reader, writer))
    await eventually(lambda: edge.body_budget.total > 900_000)
    small = edge.headers(edge.lenient)
    assert (await edge.post(encoded(pad="x" * 200_000), headers=small)).status == 202
    assert await read_answer(held[0][0]) == (503, b'{"error":"internal"}')
    assert edge.body_budget.total > 500_000
    await hang_up(*[writer for _, writer in held])
    await eventually(lambda: edge.body_budget.total == 0)


async def test_transfer_codings_other_than_chunked_are_400(edge: LiveEdge) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", edge.port)
    lines = ["POST /v1/events HTTP/1.1", "Host: x", "Transfer-Encoding: gzip, chunked"]
    lines += [f"{name}: {value}" for name, value in edge.headers().items()]
    body = encoded()
    writer.write(("\r\n".join(lines) + f"\r\n\r\n{len(body):x}\r\n").encode() + body + b"\r\n0\r\n\r\n")
    status, answer = await read_answer(reader)
    assert (status, json.loads(answer)["details"][0]["field"]) == (400, "Transfer-Encoding")
    await hang_up(writer)
