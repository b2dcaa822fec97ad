"""The depth of JSON text is that of its value, whatever its texts contain."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.limits import MAX_DEPTH
from schemas.nesting import depth_exceeds, is_deep

TEXTS = st.text('[]{}",:\\/ab\n', max_size=6)
VALUES = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=30,
)


def depth(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


@given(VALUES, st.integers(0, 12), st.sampled_from([None, 1]))
def test_depth_is_that_of_the_value(value: object, limit: int, indent: int | None) -> None:
    text = json.dumps(value, indent=indent).encode()
    assert depth_exceeds(text, limit) == (depth(value) > limit)


@pytest.mark.parametrize(
    ("opening", "closing", "levels"),
    [(b"[", b"]", 1), (b'{"a":[1,', b"]}", 2), (b'["]",[],{"\\"]\\\\":', b"}]", 2)],
)
def test_the_limit_itself_is_not_too_deep(opening: bytes, closing: bytes, levels: int) -> None:
    for repeated in (1, MAX_DEPTH // levels - 1, MAX_DEPTH // levels, MAX_DEPTH // levels + 1, 100_000):
        text = opening * repeated + b"1" + closing * repeated
        assert is_deep(text) == (repeated * levels > MAX_DEPTH)


@given(st.binary(max_size=200) | st.text('[]{}",:\\ab1', max_size=200).map(str.encode), st.integers(0, 9))
def test_any_bytes_have_an_answer(text: bytes, limit: int) -> None:
    assert depth_exceeds(text, limit) in {True, False}


@pytest.mark.parametrize("unit", [b"[],", b'"]",', b'["["],', b"[" * 150 + b"]" * 150 + b","])
def test_long_texts_are_looked_at_in_slices(unit: bytes) -> None:
    assert not is_deep(b"[" + unit * (300_000 // len(unit)) + b"0]")
    assert is_deep(b"[" + unit * (300_000 // len(unit)) + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"]")
