"""Bodies that come slowly, in part or never: they are bounded in time and memory."""

import asyncio
import json
from contextlib import suppress
from pathlib import Path

from tests.contract.edge.live_edge import LiveEdge, live_edge
from tests.contract.edge.raw_http import hang_up, head, read_answer, request
from tests.edge_events import encoded
from tests.eventually import eventually


async def test_slow_body_is_given_up_and_others_are_served_meanwhile(tmp_path: Path) -> None:
    async with live_edge(tmp_path, body_timeout=0.5) as edge:
        reader, writer = await edge.connect()
        writer.write(request(edge, encoded())[:-10])
        assert (await edge.post(encoded())).status == 202
        async with asyncio.timeout(60):
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
        writer.close()
        assert (await edge.post(encoded())).status == 202
        page = await edge.metrics_page()
        assert b'outcome="unavailable",project="1",reason="slow body",sdk="svc-js"} 1.0' in page


async def test_client_that_goes_away_in_the_middle_costs_nothing(edge: LiveEdge) -> None:
    for _ in range(20):
        _, writer = await edge.connect()
        writer.write(request(edge, encoded())[:-10])
        await writer.drain()
        await hang_up(writer)
    assert (await edge.post(encoded())).status == 202
    assert len(edge.stored()) == 1


async def test_token_that_holds_its_share_is_refused_and_others_are_served(edge: LiveEdge) -> None:
    edge.body_budget._max_token_bytes = 300_000
    slow = []
    for _ in range(2):
        _, writer = await edge.connect()
        writer.write(request(edge, encoded(pad="x" * 100_000))[:-10])
        slow.append(writer)
    await eventually(lambda: edge.body_budget.total > 180_000)
    more = encoded(pad="x" * 150_000)
    answer = await edge.post(more)
    assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
    assert json.loads(answer.body) == {"error": "rateLimited", "retryAfterMs": 1000}
    assert (await edge.post(more, headers=edge.headers(edge.lenient))).status == 202
    assert (await edge.post(encoded())).status == 202
    page = await edge.metrics_page()
    assert b'outcome="rateLimited",project="1",reason="unanswered bodies",sdk="svc-js"} 1.0' in page
    await hang_up(*slow)
    await eventually(lambda: edge.body_budget.total == 0)
    assert (await edge.post(more)).status == 202


async def test_declared_length_beyond_the_tokens_share_is_refused_before_the_body_is_sent(
    edge: LiveEdge,
) -> None:
    edge.body_budget._max_token_bytes = 50_000
    reader, writer = await edge.connect()
    writer.write(head(edge, "Content-Length: 60000", "Expect: 100-continue"))
    status, body = await read_answer(reader)
    assert (status, json.loads(body)["error"]) == (429, "rateLimited")
    await hang_up(writer)


async def test_chunked_body_is_held_as_it_comes(edge: LiveEdge) -> None:
    edge.body_budget._max_token_bytes = 50_000
    reader, writer = await edge.connect()
    writer.write(head(edge, "Transfer-Encoding: chunked") + b"EA60\r\n" + b"x" * 60_000 + b"\r\n")
    status, body = await read_answer(reader)
    assert (status, json.loads(body)["error"]) == (429, "rateLimited")
    writer.close()
    await eventually(lambda: edge.body_budget.total == 0)


async def test_body_has_a_separate_time_limit(tmp_path: Path) -> None:
    async with live_edge(tmp_path, head_seconds=0.2) as edge:
        reader, writer = await edge.connect()
        whole = request(edge, encoded())
        writer.write(whole[:-10])
        _, silent = await edge.connect()
        await eventually(lambda: edge.connections.total == 1)
        writer.write(whole[-10:])
        assert (await read_answer(reader))[0] == 202
        await hang_up(writer, silent)


async def test_bodies_held_open_give_way_to_a_token_that_holds_less(edge: LiveEdge) -> None:
    edge.body_budget._max_bytes = 1_000_000
    held = []
    for _ in range(3):
        reader, writer = await edge.connect()
        writer.write(request(edge, encoded(pad="x" * 300_000))[:-10])
        held.append((reader, writer))
    await eventually(lambda: edge.body_budget.total > 900_000)
    small = edge.headers(edge.lenient)
    assert (await edge.post(encoded(pad="x" * 200_000), headers=small)).status == 202
    assert await read_answer(held[0][0]) == (503, b'{"error":"internal"}')
    assert edge.body_budget.total > 500_000
    await hang_up(*[writer for _, writer in held])
    await eventually(lambda: edge.body_budget.total == 0)
