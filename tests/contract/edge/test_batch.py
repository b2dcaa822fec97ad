"""POST /v1/events:batch (protocol, sections 2.9 and 4.2; contract, section 2, point 2)."""

import json

import pytest

from tests.contract.edge.live_edge import LiveEdge
from tests.edge_events import encoded, event

BATCH = "/v1/events:batch"


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.holds("protocol 4.2")
async def test_batch_of_100_is_accepted_whole(edge: LiveEdge, compressed: bool) -> None:
    answer = await edge.post_batch([event() for _ in range(100)], compressed)
    assert (answer.status, answer.body) == (202, b'{"accepted":100,"rejected":0,"errors":[]}')
    assert len(edge.stored()) == 100


@pytest.mark.holds("protocol 2.9", "protocol 4.2", "contract 2.2")
async def test_bad_events_are_rejected_alone_in_ascending_index(edge: LiveEdge) -> None:
    answer = await edge.post_batch([event(), event(kind="x"), event(), {}, "text", None, event(id="1")])
    assert answer.status == 202
    body = answer.json
    assert (body["accepted"], body["rejected"]) == (2, 5)
    assert [error["index"] for error in body["errors"]] == [1, 3, 4, 5, 6]
    assert all(set(error) == {"index", "error", "details"} for error in body["errors"])
    assert all(error["error"] == "validationFailed" and error["details"] for error in body["errors"])
    assert body["errors"][0]["details"][0]["field"] == "kind"
    assert len(edge.stored()) == 2


async def test_empty_batch_is_accepted(edge: LiveEdge) -> None:
    assert (await edge.post_batch([])).json == {"accepted": 0, "rejected": 0, "errors": []}


async def test_wrapper_may_have_unknown_fields(edge: LiveEdge) -> None:
    body = json.dumps({"sentAt": 1, "events": [event()], "x": {}}).encode()
    assert (await edge.post(body, BATCH)).json["accepted"] == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"[]", "body"),
        (b'"text"', "body"),
        (b"null", "body"),
        (b"{", "body"),
        (b"", "body"),
        (b"{}", "events"),
        (b'{"events":null}', "events"),
        (b'{"events":{}}', "events"),
        (b'{"events":"x"}', "events"),
        (b'{"events":[' + b"{}," * 100 + b"{}]}", "events"),
        (b'{"events":[{},]}', "body"),
        (b'{"events":[{"a":\xff}]}', "body"),
        (b'{"events":[' + b"[" * 5000 + b"]" * 5000 + b"}", "body"),
        (b'{"events":[NaN]}', "body"),
    ],
)
@pytest.mark.holds("contract 2.2")
async def test_bad_wrapper_is_400_with_its_field(edge: LiveEdge, body: bytes, field: str) -> None:
    answer = await edge.post(body, BATCH)
    assert (answer.status, answer.fields) == (400, [field])
    assert edge.stored() == []


@pytest.mark.parametrize("body", [b"[]", b"[" + encoded() + b"]", b" \n[" + encoded() * 2 + b"]"])
async def test_array_of_events_is_answered_with_the_wrapper_that_it_lacks(
    edge: LiveEdge, body: bytes
) -> None:
    answer = await edge.post(body, BATCH)
    assert answer.status == 400
    assert answer.json["details"] == [{"field": "body", "message": 'expected an object: {"events": [...]}'}]


async def test_order_of_a_project_s_events_within_a_partition_is_kept(edge: LiveEdge) -> None:
    given = [event() for _ in range(50)]
    await edge.post_batch(given)
    wanted = [each["id"].replace("-", "") for each in given]
    for partition in range(4):
        from schemas.chunks import decode_chunk

        ids = [
            e.id.hex() for r in edge.sink.records if r.partition == partition for e in decode_chunk(r.value)
        ]
        assert ids == [each for each in wanted if each in ids]
