"""The client's breadcrumbs in the shapes of the wire (protocol, section 2.8)."""

from collections.abc import Mapping
from typing import Any

import msgspec
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
