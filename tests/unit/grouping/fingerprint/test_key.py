"""The 64 bits and their text."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grouping.fingerprint.key import LEAST, Fingerprint, hash_parts

texts = st.text(st.characters(codec=None), max_size=20)


@given(st.lists(texts, max_size=5))
def test_hash_is_an_unsigned_64_bit_number(parts: list[str]) -> None:
    assert LEAST <= hash_parts(tuple(parts)) < 1 << 64


@given(st.lists(texts, min_size=2, max_size=6))
def test_moving_text_from_one_part_to_the_next_changes_the_hash(parts: list[str]) -> None:
    for index, (one, other) in enumerate(pairwise(parts)):
        if other:
            moved = [*parts[:index], one + other[0], other[1:], *parts[index + 2 :]]
            assert hash_parts(tuple(moved)) != hash_parts(tuple(parts))


def test_parts_that_look_like_lengths_are_distinguished() -> None:
    assert hash_parts(("1:a", "b")) != hash_parts(("1", "a", "b"))
    assert hash_parts(()) != hash_parts(("",))


def test_version_is_part_of_the_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    before = hash_parts(("a",))
    monkeypatch.setattr("grouping.fingerprint.key.GROUPING_VERSION", "v2")
    assert hash_parts(("a",)) != before


@given(st.integers(0, (1 << 64) - 1))
def test_hex_is_the_hash_in_16_lower_case_digits(number: int) -> None:
    text = Fingerprint(number, "stack", ()).hex
    assert len(text) == 16
    assert text == text.lower()
    assert int(text, 16) == number
