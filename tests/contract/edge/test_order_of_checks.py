"""The order of checks, and that nothing after a failed check runs (contract, section 2, points 1, 9 and 13)."""

import asyncio
from pathlib import Path

import pytest

from tests.contract.edge.live_edge import LiveEdge, live_edge
from tests.contract.edge.raw_http import head, read_answer
from tests.edge_events import encoded, event


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v2/events", "/v1/events/x", "/v1/events:other", "//", "/api/1/store"]
)
@pytest.mark.holds("protocol 9.1", "contract 2.1")
async def test_paths_that_do_not_exist_are_404_for_every_method(edge: LiveEdge, path: str) -> None:
    for method in ("GET", "POST", "PUT", "OPTIONS", "DELETE", "PATCH"):
        answer = await edge.post(b"", path, headers={}, method=method)
        assert (answer.status, answer.body) == (404, b'{"error":"notFound"}')


@pytest.mark.holds("contract 2.13")
async def test_unknown_path_does_not_count_against_the_rate_limit(edge: LiveEdge) -> None:
    project = edge.add_project("3", rate_limit_per_minute=1)
    for _ in range(3):
        assert (await edge.post(b"", "/v1/other", edge.headers(project))).status == 404
    assert (await edge.post(encoded(), headers=edge.headers(project))).status == 202


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "HEAD", "PROPFIND"])
@pytest.mark.parametrize("path", ["/v1/events", "/v1/events:batch/"])
@pytest.mark.holds("contract 2.13")
async def test_wrong_method_is_405_with_allow_before_the_token(
    edge: LiveEdge, path: str, method: str
) -> None:
    answer = await edge.post(b"", path, headers={}, method=method)
    assert answer.status == 405
    assert answer.headers["Allow"] == "OPTIONS, POST"
    assert answer.body in {b'{"error":"methodNotAllowed"}', b""}


async def answer_to_head(
    edge: LiveEdge, length: int = 1000, *lines: str, **headers: str
) -> tuple[int, bytes]:
    """The answer to a head without a body; it doesn't wait for one."""
    reader, writer = await edge.connect()
    try:
        writer.write(head(edge, f"Content-Length: {length}", *lines, headers=edge.headers(None, **headers)))
        return await read_answer(reader)
    finally:
        writer.close()


HUGE = 1 << 40


@pytest.mark.parametrize(
    ("length", "headers", "status", "words"),
    [
        (1000, {"Authorization": ""}, 401, b'{"error":"unauthorized",'),
        (HUGE, {"Authorization": "Bearer nope", "Content_Type": "text/plain"}, 401, b"unauthorized"),
        (HUGE, {"Content_Type": "text/plain"}, 400, b'"field":"Content-Type"'),
        (HUGE, {}, 413, b"payloadTooLarge"),
    ],
    ids=["token before body", "token before headers and size", "headers before size", "size before JSON"],
)
@pytest.mark.holds("contract 2.1")
async def test_first_check_that_fails_answers_without_the_body(
    edge: LiveEdge, length: int, headers: dict[str, str], status: int, words: bytes
) -> None:
    found, body = await answer_to_head(edge, length, **headers)
    assert found == status
    assert words in body


@pytest.mark.holds("contract 2.1")
async def test_rate_limit_is_checked_before_headers_and_body(edge: LiveEdge) -> None:
    project = edge.add_project("3", rate_limit_per_minute=1)
    own = edge.headers(project)
    assert (await edge.post(encoded(), headers=own)).status == 202
    status, _ = await answer_to_head(edge, Authorization=own["Authorization"], Content_Type="text/plain")
    assert status == 429


async def test_client_that_expects_100_continue_hears_of_it_only_after_the_checks(edge: LiveEdge) -> None:
    status, _ = await answer_to_head(edge, 1000, "Expect: 100-continue", Authorization="")
    assert status == 401
    body = encoded()
    reader, writer = await edge.connect()
    writer.write(head(edge, f"Content-Length: {len(body)}", "Expect: 100-continue"))
    async with asyncio.timeout(60):
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 202 ")
    writer.close()


@pytest.mark.holds("contract 2.1")
async def test_unknown_token_is_503_until_the_registry_is_loaded(tmp_path: Path) -> None:
    async with live_edge(tmp_path, loaded=False) as edge:
        answer = await edge.post(encoded())
        assert (answer.status, answer.body) == (503, b'{"error":"internal"}')
        assert int(answer.headers["Retry-After"]) > 0
        assert (await edge.post(encoded(), headers=edge.headers(Authorization="Bearer x"))).status == 401
        edge.projects.set_current()
        assert (await edge.post(encoded())).status == 202


async def test_kafka_unreachable_is_202_from_the_spool_and_503_when_that_is_full(tmp_path: Path) -> None:
    async with live_edge(tmp_path, spool_bytes=20_000) as edge:
        edge.sink.up = False
        assert (await edge.post(encoded())).status == 202
        assert edge.spool.size > 0
        answer = None
        for _ in range(100):
            answer = await edge.post_batch([event() for _ in range(20)])
            if answer.status != 202:
                break
        assert answer is not None
        assert (answer.status, answer.body) == (503, b'{"error":"internal"}')
        assert int(answer.headers["Retry-After"]) > 0
