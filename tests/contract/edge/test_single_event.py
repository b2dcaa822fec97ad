"""POST /v1/events (protocol, section 4.1) and the parts of an event that arrive (contract, section 2, point 6)."""

import json
from typing import Any

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


async def test_repeated_name_counts_as_its_last_value(edge: LiveEdge) -> None:
    body = encoded()[:-1] + b', "environment": "last"}'
    assert (await edge.post(body)).status == 202
    assert edge.stored_bytes() == [body]
    assert (await edge.post(encoded()[:-1] + b', "kind": "odd"}')).status == 400


def nulls() -> dict[str, Any]:
    """Null in every field that is not required."""
    given = event(**dict.fromkeys(["user", "tags", "breadcrumbs", "fingerprint", "traceId", "spanId"]))
    given["device"] |= {"model": None, "locale": None}
    given["app"] |= {"build": None, "framework": None}
    given["error"]["cause"] = None
    given["error"]["stack"][0] |= dict.fromkeys(
        ["function", "column", "absolutePath", "preContext", "contextLine", "postContext"]
    )
    return given


def required() -> dict[str, Any]:
    """Only the required fields."""
    names = ["id", "timestamp", "kind", "platform", "release", "environment"]
    return {name: value for name, value in event().items() if name in names} | {
        "device": {"os": "other", "osVersion": ""},
        "app": {"version": ""},
        "error": {"type": "E", "message": "m", "stack": [{"file": "a", "line": 1, "inApp": False}]},
    }


def crumb(kind: str, moment: str = "2026-01-31T12:00:00Z") -> dict[str, Any]:
    """A breadcrumb without the listed keys and with another."""
    return {"timestamp": moment, "type": kind, "data": {"other": [1]}}


MOMENTS = ("12:00:00Z", "12:00:00.1Z", "12:00:00.123456789Z", "12:00:00.000+00:00")
ACCEPTED = {
    "empty": event(environment="", error={"type": "", "message": "", "stack": []}),
    "null": nulls(),
    "left out": required(),
    **{
        moment: event(timestamp=f"2026-01-31T{moment}", breadcrumbs=[crumb("log", f"2026-01-31T{moment}")])
        for moment in MOMENTS
    },
    **{name: event(platform=name) for name in ("javascript", "ios", "android", "python")},
    **{kind: event(breadcrumbs=[crumb(kind)]) for kind in ("nav", "net", "log", "user", "custom", "track")},
    "hashes": event(user={"id": "u", "name": "Ada", "anonymous": True, "linkHashes": {"email": "0" * 64}}),
}


@pytest.mark.parametrize("given", ACCEPTED.values(), ids=ACCEPTED)
@pytest.mark.holds(
    "protocol 2.1", "protocol 2.2", "protocol 2.3", "protocol 2.8", "protocol 2.11", "protocol 9.5"
)
@pytest.mark.holds("contract 2.6", "contract 2.7")
async def test_event_that_the_schema_allows_is_accepted(edge: LiveEdge, given: dict[str, Any]) -> None:
    assert (await edge.post(json.dumps(given).encode())).status == 202
