"""POST /v1/events (protocol, section 4.1) and what of an event arrives (contract, section 2, point 6)."""

import gzip
import json

import pytest

from schemas.ids import event_partition, uuid7
from schemas.topics import Topic
from tests.contract.edge.live_edge import LiveEdge
from tests.edge_events import encoded, event


@pytest.mark.holds("protocol 4.1", "protocol 7")
async def test_event_is_answered_202_with_an_empty_object_byte_for_byte(edge: LiveEdge) -> None:
    answer = await edge.post(encoded())
    assert (answer.status, answer.body) == (202, b"{}")
    assert answer.headers["Content-Type"] == "application/json"


@pytest.mark.holds("protocol 9.3", "contract 2.6")
async def test_event_is_forwarded_byte_for_byte_with_unknown_fields(edge: LiveEdge) -> None:
    body = encoded(colour={"a": [1, 1.50, 2]}).replace(b'"kind"', b' "kind"  ')
    assert (await edge.post(body)).status == 202
    assert edge.stored_bytes() == [body]


async def test_event_carries_project_sdk_time_and_id(edge: LiveEdge) -> None:
    given = event()
    await edge.post(json.dumps(given).encode())
    (stored,) = edge.stored()
    assert (stored.project, stored.sdk) == (1, "svc-js/1.2.3")
    assert stored.id.hex() == given["id"].replace("-", "")
    assert stored.received_ms > 1_700_000_000_000


@pytest.mark.holds("contract 2.8")
async def test_equal_ids_of_a_project_meet_in_the_partition_of_the_contract(edge: LiveEdge) -> None:
    for _ in range(20):
        given = uuid7()
        await edge.post_event(id=str(given))
        await edge.post_event(id=str(given).upper())
        first, second = (r.partition for r in edge.sink.records[-2:] if r.topic is Topic.EVENTS)
        assert first == second == event_partition(1, given.bytes, 4)


@pytest.mark.parametrize("path", ["/v1/events/", "/v1/events//", "/v1/events?x=1", "/v1/%65vents"])
@pytest.mark.holds("protocol 4")
async def test_trailing_slashes_and_spellings_of_the_path_are_not_significant(
    edge: LiveEdge, path: str
) -> None:
    assert (await edge.post(encoded(), path)).status == 202


@pytest.mark.holds("protocol 5")
async def test_gzip_body_is_accepted(edge: LiveEdge) -> None:
    body = encoded()
    answer = await edge.post(gzip.compress(body), headers=edge.headers(Content_Encoding="gzip"))
    assert answer.status == 202
    assert edge.stored_bytes() == [body]


@pytest.mark.holds("contract 2.6")
async def test_upper_case_id_is_kept_in_lower_case(edge: LiveEdge) -> None:
    given = uuid7()
    await edge.post_event(id=str(given).upper())
    assert json.loads(edge.stored_bytes()[0])["id"] == str(given)


@pytest.mark.holds("contract 2.6")
async def test_lone_surrogate_escape_becomes_the_replacement_character(edge: LiveEdge) -> None:
    body = encoded(environment="SURROGATE", tags={"KEY": "x"})
    body = body.replace(b"SURROGATE", rb"a\ud83d\ud83d\ude00\udc00 \\ud83d").replace(b"KEY", rb"\udc00k")
    assert (await edge.post(body)).status == 202
    stored = json.loads(edge.stored_bytes()[0])
    assert stored["environment"] == "a\ufffd\U0001f600\ufffd \\ud83d"
    assert stored["tags"] == {"\ufffdk": "x"}


@pytest.mark.parametrize(
    "text",
    ["\x00", "a\x00b", "\u202eright to left\u200f", "\U0001f600", "", "x" * 500_000, 'line\nend\t"quoted"\\'],
    ids=["nul", "nul inside", "marks", "emoji", "empty", "500 KB", "escapes"],
)
async def test_odd_strings_arrive_as_sent(edge: LiveEdge, text: str) -> None:
    given = event(environment=text)
    given["error"]["message"] = text[:200_000]
    body = json.dumps(given).encode()
    assert (await edge.post(body)).status == 202
    assert edge.stored_bytes() == [body]


@pytest.mark.holds("contract 2.6")
async def test_empty_strings_and_an_empty_stack_are_accepted(edge: LiveEdge) -> None:
    given = event(environment="", error={"type": "", "message": "", "stack": []})
    assert (await edge.post(json.dumps(given).encode())).status == 202


@pytest.mark.holds("protocol 2.1", "protocol 2.3", "contract 2.6")
async def test_null_is_as_if_left_out_for_every_field_that_is_not_required(edge: LiveEdge) -> None:
    nulls = dict.fromkeys(["user", "tags", "breadcrumbs", "fingerprint", "traceId", "spanId"])
    given = event(**nulls)
    given["device"] |= {"model": None, "locale": None}
    given["app"] |= {"build": None, "framework": None}
    given["error"]["cause"] = None
    given["error"]["stack"][0] |= dict.fromkeys(
        ["function", "column", "absolutePath", "preContext", "postContext"]
    )
    assert (await edge.post(json.dumps(given).encode())).status == 202


@pytest.mark.holds("protocol 2.2", "protocol 9.5")
async def test_every_field_that_is_not_required_may_be_left_out(edge: LiveEdge) -> None:
    required = ["id", "timestamp", "kind", "platform", "release", "environment"]
    given = {name: value for name, value in event().items() if name in required} | {
        "device": {"os": "other", "osVersion": ""},
        "app": {"version": ""},
        "error": {"type": "E", "message": "m", "stack": [{"file": "a", "line": 1, "inApp": False}]},
    }
    assert (await edge.post(json.dumps(given).encode())).status == 202


@pytest.mark.parametrize(
    "moment",
    [
        "2026-01-31T12:00:00Z",
        "2026-01-31T12:00:00.1Z",
        "2026-01-31T12:00:00.123456789Z",
        "2026-01-31T12:00:00.000+00:00",
    ],
)
@pytest.mark.holds("contract 2.6")
async def test_other_precisions_and_a_zero_offset_are_accepted(edge: LiveEdge, moment: str) -> None:
    crumb = {"timestamp": moment, "type": "log", "data": {}}
    assert (await edge.post_event(timestamp=moment, breadcrumbs=[crumb])).status == 202


async def test_number_with_a_fraction_of_zero_is_an_integer(edge: LiveEdge) -> None:
    body = encoded(x=1.25).replace(b'"line": 10', b'"line": 10.0').replace(b'"x": 1.25', b'"x": 1.250')
    assert b"10.0" in body
    assert (await edge.post(body)).status == 202
    assert b'"line": 10,' in edge.stored_bytes()[0]
    assert b'"x": 1.250' in edge.stored_bytes()[0]


async def test_repeated_name_counts_as_its_last_value(edge: LiveEdge) -> None:
    body = encoded()[:-1] + b', "environment": "last"}'
    assert (await edge.post(body)).status == 202
    assert edge.stored_bytes() == [body]
    assert (await edge.post(encoded()[:-1] + b', "kind": "odd"}')).status == 400


@pytest.mark.holds("protocol 5")
async def test_idempotency_key_header_is_reserved_and_passed_over(edge: LiveEdge) -> None:
    answer = await edge.post(encoded(), headers=edge.headers(Idempotency_Key="anything"))
    assert answer.status == 202


@pytest.mark.parametrize("platform", ["javascript", "ios", "android", "python"])
@pytest.mark.holds("contract 2.7")
async def test_platforms_of_the_protocol_and_our_own_are_accepted(edge: LiveEdge, platform: str) -> None:
    assert (await edge.post_event(platform=platform)).status == 202


@pytest.mark.parametrize("kind", ["nav", "net", "log", "user", "custom", "track"])
@pytest.mark.holds("protocol 2.8", "contract 2.6")
async def test_breadcrumb_of_each_type_may_lack_the_listed_keys_and_have_others(
    edge: LiveEdge, kind: str
) -> None:
    crumb = {"timestamp": "2026-01-31T12:00:00Z", "type": kind, "data": {"other": [1]}}
    assert (await edge.post_event(breadcrumbs=[crumb])).status == 202


@pytest.mark.holds("protocol 2.11")
async def test_user_of_the_reporting_library_is_accepted_with_its_hashes(edge: LiveEdge) -> None:
    user = {"id": "u", "name": "Ada", "anonymous": True, "linkHashes": {"email": "0" * 64}}
    assert (await edge.post_event(user=user)).status == 202
