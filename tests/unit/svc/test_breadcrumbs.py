"""The client's breadcrumbs in the shapes of the wire (protocol, section 2.8)."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given

from schemas.event import Breadcrumb
from svc.breadcrumbs import breadcrumb_for_client, breadcrumb_on_wire, to_breadcrumb
from svc.plain import encode
from tests.unit.svc.fuzzed import crumbs

NS = 1_790_000_000_123_456_789


def wire(given_crumb: Mapping[str, Any] | str) -> dict[str, Any]:
    return breadcrumb_on_wire(to_breadcrumb(NS, given_crumb))


def test_time_is_iso_8601_in_utc_with_milliseconds() -> None:
    assert wire("m")["timestamp"] == "2026-09-21T14:13:20.123Z"


@pytest.mark.parametrize(
    ("client", "kind", "data"),
    [
        (
            {"type": "nav", "data": {"from": "/a", "to": "/b?token=x"}},
            "nav",
            {"from": "/a", "to": "/b?token=***"},
        ),
        ({"type": "nav", "message": "/cart"}, "nav", {"to": "/cart"}),
        (
            {
                "type": "net",
                "data": {"method": "GET", "url": "http://h/?api_key=1", "status": "200", "durationMs": 1.6},
            },
            "net",
            {"status": 200, "durationMs": 2, "method": "GET", "url": "http://h/?api_key=***"},
        ),
        ({"type": "net", "data": {"url": "/", "status": "broken", "durationMs": None}}, "net", {"url": "/"}),
        ({"type": "log", "level": "error", "message": "m"}, "log", {"level": "error", "message": "m"}),
        ({"type": "log"}, "log", {"level": "info", "message": ""}),
        (
            {"type": "user", "message": "click", "data": {"target": 5}},
            "user",
            {"action": "click", "target": "5"},
        ),
        ({"type": "track", "message": "bought", "data": {"n": 1}}, "custom", {"n": 1, "track": "bought"}),
        ({"type": "custom", "message": "m", "data": {"a": [1]}}, "custom", {"a": [1], "message": "m"}),
        ({"message": "m"}, "custom", {"message": "m"}),
        ({"type": "unheard", "message": "m"}, "custom", {"type": "unheard", "message": "m"}),
        ({"message": "m", "category": "auth"}, "custom", {"category": "auth", "message": "m"}),
        ({"data": 7}, "custom", {"value": 7}),
    ],
)
def test_client_breadcrumb_becomes_the_wires(client: dict[str, Any], kind: str, data: dict[str, Any]) -> None:
    made = wire(client)
    assert (made["type"], made["data"]) == (kind, data)


def test_values_that_are_not_json_are_converted() -> None:
    class Awkward:
        def __repr__(self) -> str:
            raise RuntimeError

    endless: list[Any] = []
    endless.append(endless)
    data = wire(
        {
            "data": {
                "set": {1},
                "nan": float("nan"),
                "big": 10**400,
                "awkward": Awkward(),
                "bytes": b"x",
                3: "key",
                "endless": endless,
            }
        }
    )["data"]
    assert data["set"] == [1]
    assert data["nan"] == "nan"
    assert data["big"] == "<integer of 1329 bits>"
    assert data["awkward"] == "<unprintable Awkward>"
    assert data["bytes"] == "b'x'"
    assert data["3"] == "key"
    encode(data)


def test_a_breadcrumb_is_a_note_not_a_dump() -> None:
    assert len(encode(wire({"data": {str(n): "x" * 5_000 for n in range(5_000)}}))) < 20_000
    assert len(encode(wire({"message": "m" * 100_000}))) < 5_000


@given(crumbs)
def test_the_server_accepts_all_breadcrumbs_of_the_client(client: dict[str, Any]) -> None:
    crumb = to_breadcrumb(NS, client)
    msgspec.json.decode(encode(breadcrumb_on_wire(crumb)), type=Breadcrumb)
    encode(breadcrumb_for_client(crumb))
