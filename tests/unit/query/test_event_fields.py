import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from query.event_fields import MAX_PLACES, extract
from schemas.errors import Unreadable

EVENT = {
    "id": "0199ee65-f275-750f-87fc-3665cc81dda7",
    "timestamp": "2025-10-16T19:01:22.677Z",
    "kind": "error",
    "platform": "android",
    "release": "android@1.0.0+1",
    "environment": "staging",
    "device": {"os": "android", "osVersion": "13"},
    "app": {"version": "1.0.0"},
    "error": {"type": "E", "message": "m", "stack": [{"file": "a.js", "line": 1, "inApp": True}]},
}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


def with_field(path: str, value: object) -> bytes:
    """The event with one value replaced, by dotted path."""
    event = msgspec.json.decode(msgspec.json.encode(EVENT))
    node = event
    *parents, name = path.split(".")
    for parent in parents:
        node = node[parent]
    node[name] = value
    return msgspec.json.encode(event)


def stack(*functions: str) -> list[dict[str, object]]:
    return [{"file": f"{name}.js", "function": name, "line": 1, "inApp": True} for name in functions]


def test_places_are_those_of_all_causes_each_once_outermost_first() -> None:
    cause = {"type": "C", "message": "", "stack": stack("b", "c")}
    error = {"type": "E", "message": "", "stack": stack("a", "b"), "cause": cause}
    for _ in range(2):
        places = extract(with_field("error", error)).places()
        assert (places.files, places.functions) == (("a.js", "b.js", "c.js"), ("a", "b", "c"))


def test_stacks_of_one_checksum_keep_their_own_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("query.event_fields.isal_zlib.crc32", lambda _: 7)
    for name in ("a", "b", "a"):
        error = {
            "type": "E",
            "message": "",
            "stack": stack(name),
            "cause": {"type": "C", "message": "", "stack": []},
        }
        assert extract(with_field("error", error)).places().files == (f"{name}.js",)


def test_places_are_bounded() -> None:
    many = stack(*(f"f{n}" for n in range(100)))
    cause = {"type": "C", "message": "", "stack": stack("last")}
    error = {"type": "E", "message": "", "stack": many, "cause": cause}
    places = extract(with_field("error", error)).places()
    assert len(places.files) == len(places.functions) == MAX_PLACES


@pytest.mark.parametrize(
    "path",
    ["release", "kind", "device.osVersion", "tags", "user", "error.stack", "error", "timestamp", "device"],
)
@given(value=json_values)
def test_an_odd_value_leaves_the_rest_readable(path: str, value: object) -> None:
    found = extract(with_field(path, value))
    found.places()
    assert found.environment == "staging"
    assert all(
        isinstance(text, str) for text in (found.release, found.kind, found.device.os, found.error.message)
    )


@given(st.binary(max_size=40))
def test_bytes_that_are_no_object_are_unreadable_and_raise_nothing_else(event: bytes) -> None:
    try:
        extract(event)
    except Unreadable:
        return
    assert isinstance(msgspec.json.decode(event), dict)
