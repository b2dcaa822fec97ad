import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.changes import Update
from schemas.errors import KeyReused
from schemas.idempotency import is_repeat, request_id, uses_known_key
from schemas.ids import uuid7

texts = st.text(max_size=5)


@given(texts, texts, st.lists(texts, max_size=3), st.lists(texts, max_size=3))
def test_a_request_repeats_itself_and_no_other_takes_its_key(
    key: str, scope: str, parts: list[str], other: list[str]
) -> None:
    known = [request_id(key, scope, *parts)] if key else []
    assert is_repeat(request_id(key, scope, *parts), known) == bool(key)
    if key and other != parts:
        with pytest.raises(KeyReused):
            is_repeat(request_id(key, scope, *other), known)
    assert not is_repeat(request_id(key + "x", scope, *parts), known)
    assert not is_repeat(request_id(key, scope + "x", *parts), known)


def test_without_a_key_a_request_has_no_name() -> None:
    assert request_id("", "project", "body") == ""
    assert not is_repeat("", ["a:b"])


def test_ids_of_one_moment_are_no_key_of_each_other() -> None:
    first, second = str(uuid7(1_790_000_000_000)), str(uuid7(1_790_000_000_001))
    assert not uses_known_key(second, [first])
    assert uses_known_key(first, [first])


def test_equal_bodies_are_one_request_in_whatever_order_their_fields_came() -> None:
    assert request_id("k", "", {"a": 1, "b": 2}) == request_id("k", "", {"b": 2, "a": 1})
    assert request_id("k", "", Update(status="open")) != request_id("k", "", Update(status="ignored"))


def test_a_key_of_bytes_that_are_no_text_is_a_key() -> None:
    assert request_id("\udcff", "", 1) != request_id("\udcfe", "", 1)
