"""The 64 bits and their text."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from grouping.fingerprint.key import Fingerprint, hash_parts

texts = st.text(st.characters(codec=None), max_size=20)


@given(texts, st.lists(texts, max_size=5))
def test_hash_is_an_unsigned_64_bit_number(version: str, parts: list[str]) -> None:
    assert 0 <= hash_parts(version, tuple(parts)) < 1 << 64


@given(st.lists(texts, min_size=2, max_size=6))
def test_moving_text_from_one_part_to_the_next_changes_the_hash(parts: list[str]) -> None:
    for index, (one, other) in enumerate(pairwise(parts)):
        if other:
            moved = [*parts[:index], one + other[0], other[1:], *parts[index + 2 :]]
            assert hash_parts("v1", tuple(moved)) != hash_parts("v1", tuple(parts))


def test_parts_that_look_like_lengths_are_told_apart() -> None:
    assert hash_parts("v1", ("1:a", "b")) != hash_parts("v1", ("1", "a", "b"))
    assert hash_parts("v1", ()) != hash_parts("v1", ("",))


def test_version_is_part_of_the_hash() -> None:
    assert hash_parts("v1", ("a",)) != hash_parts("v2", ("a",))


@given(st.integers(0, (1 << 64) - 1))
def test_hex_is_the_hash_in_16_lower_case_digits(number: int) -> None:
    text = Fingerprint("v1", number, "stack", ()).hex
    assert len(text) == 16
    assert text == text.lower()
    assert int(text, 16) == number
