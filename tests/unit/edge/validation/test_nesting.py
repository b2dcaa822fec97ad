"""Events of a batch that are nested too deeply are replaced, at any position; all other bytes stay the same."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.validation import depth
from edge.validation.validate import STRICT, InvalidEvents, open_batch, validate
from schemas.limits import MAX_DEPTH
from tests.edge_events import encoded

DEEP = MAX_DEPTH + 1
GOOD = encoded()


def nested(depth: int, opening: bytes = b"[", closing: bytes = b"]", inside: bytes = b"") -> bytes:
    return opening * depth + inside + closing * depth


BOMBS = [
    nested(DEEP),
    nested(DEEP, b'{"a":', b"}", b"1"),
    nested(DEEP, b'[1,"]",', b',[{}],"["]', b"null"),
    encoded()[:-1] + b',"extra":' + nested(DEEP) + b"}",
    encoded()[:-1] + b',"extra":[[1],' + nested(DEEP, inside=b'"\\"]\\\\"') + b"],\n" + encoded()[1:],
]


@pytest.mark.parametrize("bomb", BOMBS, ids=range(len(BOMBS)))
@pytest.mark.parametrize("index", [0, 1, 2])
@pytest.mark.parametrize(
    ("opening", "closing"), [(b'{"events":[', b"]}"), (b' { "x" : [] ,"events":\n[ ', b' ] , "y":{}} ')]
)
def test_deep_event_costs_only_itself_at_any_index(
    bomb: bytes, index: int, opening: bytes, closing: bytes
) -> None:
    given = [GOOD, GOOD]
    given.insert(index, bomb)
    events = open_batch(opening + b" , ".join(given) + closing)
    assert [bytes(event) for event in events] == given
    with pytest.raises(InvalidEvents) as caught:
        validate(events[index], STRICT)
    assert [detail.message for detail in caught.value.details] == ["JSON is nested too deeply"]
    assert all(validate(event, STRICT)[1] is event for event in events if bytes(event) == GOOD)


def test_several_deep_events_and_another_deep_field() -> None:
    deep = [nested(DEEP, inside=str(number).encode()) for number in range(3)]
    body = (
        b'{"x":['
        + nested(DEEP)
        + b'],"events":['
        + b",".join([*deep, GOOD])
        + b'],"z":{"a":'
        + nested(DEEP)
        + b"}}"
    )
    assert [bytes(event) for event in open_batch(body)] == [*deep, GOOD]


@pytest.mark.parametrize(
    "body",
    [
        b'{"events":[' + nested(DEEP) + b"]",
        b'{"events":[' + nested(DEEP) + b",]}",
        b'{"events":[' + nested(DEEP) + b"]}]",
        b'{"events":[' + b"[" * DEEP,
        b'{"events":' + nested(DEEP)[1:] + b"}",
        b'{"events":["' + nested(DEEP) + b"}",
        b"[" * DEEP,
        nested(DEEP),
    ],
)
def test_wrapper_that_is_not_sound_around_a_deep_value_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidEvents) as caught:
        open_batch(body)
    assert [detail.field for detail in caught.value.details] == ["body"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


@given(st.lists(JSON, max_size=8), st.data(), st.booleans())
def test_any_values_around_a_deep_one_stay(
    values: list[object], data: st.DataObject, ascii_only: bool
) -> None:
    items = [json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass") for value in values]
    index = data.draw(st.integers(0, len(items)))
    body = b'{"events":[' + b",".join([*items[:index], nested(DEEP), *items[index:]]) + b"]}"
    repaired, replaced = depth.replace_deep_events(body)
    assert list(replaced.values()) == [nested(DEEP)]
    assert repaired == body.replace(nested(DEEP), next(iter(replaced)))


@given(st.binary(max_size=200) | st.text('[]{}",:\\ab1', max_size=200).map(str.encode))
def test_any_bytes_can_be_looked_through(body: bytes) -> None:
    assert depth.replace_deep_events(body) == (body, {})


MEGABYTE = 1_048_576


@pytest.mark.parametrize(
    "unit",
    [
        b"[]",
        b"[[]]",
        nested(5),
        nested(8),
        nested(150),
        nested(600),
        b'""',
        b'"\\\\"',
        b'{"a":{"b":["c"]}}',
        b"1",
        nested(6, b"[" + b"1," * 500, b"]", b"1"),
    ],
)
def test_work_is_bounded_however_a_body_is_made(unit: bytes) -> None:
    """Counted in calls, not in time: each stride reads a bounded stretch."""
    calls = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event == "c_call"

    body = b'{"events":[[' + (unit + b",") * (MEGABYTE // (len(unit) + 1)) + b"0]," + nested(DEEP) + b"]}"
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        depth.replace_deep_events(body)
    finally:
        sys.setprofile(before)
    assert calls < 200_000
