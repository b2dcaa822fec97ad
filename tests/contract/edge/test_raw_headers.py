"""Header bytes that no client library sends: a refusal of them is counted and told like any other."""

import asyncio
from contextlib import suppress

import pytest

from schemas.issues import decode_outcomes
from schemas.topics import Topic
from tests.contract.edge.live_edge import LiveEdge
from tests.edge_events import encoded
from tests.eventually import eventually

SDKS = [b"a\xff/1", b"\xed\xa0\xbd/1", b"\xff" * 300, b'a"\\/1\xff', b"\x80"]


async def exchange(edge: LiveEdge, sdk: bytes, body: bytes) -> bytes:
    """The whole answer to a request whose `Svc-Sdk` has these bytes."""
    reader, writer = await edge.connect()
    token = edge.project.tokens[0].token.encode()
    writer.write(
        b"POST /v1/events HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer " + token + b"\r\nSvc-Sdk: " + sdk + b"\r\n"
        b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body
    )
    async with asyncio.timeout(60):
        answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize("sdk", SDKS, ids=range(len(SDKS)))
async def test_sdk_that_is_not_utf8_is_refused_counted_and_ends_nothing(edge: LiveEdge, sdk: bytes) -> None:
    outcomes = asyncio.create_task(edge.outcomes.run())
    answer = await exchange(edge, sdk, encoded())
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'"field":"Svc-Sdk"' in answer
    await eventually(lambda: edge.sink.records or outcomes.done(), 60)
    assert not outcomes.done()
    found = [one for r in edge.sink.records if r.topic is Topic.OUTCOMES for one in decode_outcomes(r.value)]
    assert [(each.outcome, each.reason, each.count) for each in found] == [("invalid", "headers", 1)]
    assert len(found[0].sdk) <= 200
    page = await edge.post(b"", "/metrics", method="GET")
    assert page.status == 200
    assert b'outcome="invalid",project="1",reason="headers"' in page.body
    outcomes.cancel()
    with suppress(asyncio.CancelledError):
        await outcomes
