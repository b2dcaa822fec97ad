"""Clients that are many, rude or gone: the edge answers the others."""

import gc
from contextlib import suppress

import pytest

from edge.http.edge_server import EdgeConnection
from tests.contract.edge.live_edge import LiveEdge
from tests.contract.edge.raw_http import hang_up, read_answer, request
from tests.edge_events import encoded
from tests.eventually import eventually


async def test_pipelined_requests_are_answered_in_order(edge: LiveEdge) -> None:
    reader, writer = await edge.connect()
    bad = encoded(kind="x")
    writer.write(b"".join(request(edge, encoded() if n % 2 == 0 else bad) for n in range(50)))
    statuses = [(await read_answer(reader))[0] for _ in range(50)]
    assert statuses == [202, 400] * 25
    writer.close()


async def test_half_closed_request_is_answered(edge: LiveEdge) -> None:
    reader, writer = await edge.connect()
    writer.write(request(edge, encoded()))
    writer.write_eof()
    assert await read_answer(reader) == (202, b"{}")
    writer.close()


async def test_client_that_goes_away_before_its_answer_takes_no_other_with_it(edge: LiveEdge) -> None:
    writers = []
    for _ in range(10):
        _, writer = await edge.connect()
        writer.write(request(edge, encoded()))
        await writer.drain()
        writers.append(writer)
    await hang_up(*writers[::2])
    assert (await edge.post(encoded())).status == 202
    await eventually(lambda: len(edge.stored()) >= 6)
    await hang_up(*writers[1::2])


async def test_connections_that_end_leave_nothing_to_collect(edge: LiveEdge) -> None:
    def connections() -> int:
        # By type: isinstance() reads __class__, which calls into proxies.
        return sum(type(each) is EdgeConnection for each in gc.get_objects())

    gc.collect()
    before = connections()
    gc.disable()
    try:
        for _ in range(5):
            reader, writer = await edge.connect()
            writer.write(request(edge, encoded()))
            assert (await read_answer(reader))[0] == 202
            await hang_up(writer)
        await eventually(lambda: connections() <= before)
    finally:
        gc.enable()


async def test_flood_of_refusals_is_answered_at_a_limited_rate_and_others_immediately(
    edge: LiveEdge, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[tuple[str, float]] = []

    def wait_seconds(token: str) -> float:
        pauses.append((token, 0.01))
        return 0.01

    monkeypatch.setattr(edge.throttle, "wait_seconds", wait_seconds)
    unknown = edge.headers(Authorization="Bearer unknown")
    body = encoded(pad="x" * 300_000)
    for _ in range(2):
        assert (await edge.post(body, headers=unknown)).status == 401
    assert (await edge.post(encoded(kind="x"))).status == 400
    assert [token for token, _ in pauses] == ["", "", edge.project.tokens[0].token]
    assert (await edge.post(encoded())).status == 202
    assert len(pauses) == 3


@pytest.mark.parametrize(("most", "by_address", "reason"), [(3, 3, b"total"), (100, 3, b"address")])
async def test_connections_beyond_a_limit_are_closed_until_others_end(
    edge: LiveEdge, most: int, by_address: int, reason: bytes
) -> None:
    edge.connections._most, edge.connections._most_by_address = most, by_address
    held = [await edge.connect() for _ in range(3)]
    reader, writer = await edge.connect()
    with suppress(ConnectionResetError):
        assert await reader.read() == b""
    await hang_up(writer, held.pop()[1])
    await eventually(lambda: edge.connections.total == 2)
    assert (await edge.post(encoded())).status == 202
    page = await edge.metrics_page()
    assert b'svc_edge_connections_ended_total{reason="%s"} 1.0' % reason in page
    await hang_up(*[writer for _, writer in held])
