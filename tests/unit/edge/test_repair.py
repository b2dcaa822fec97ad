"""Lone surrogate escapes: the fast replacement agrees with a slow one that reads letter by letter."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.repair import has_surrogates, replace_lone_surrogates, with_id

pieces = st.lists(
    st.sampled_from(
        [
            r"\ud83d",
            r"\uD83D",
            r"\ude00",
            r"\uDFFF",
            r"\\",
            r"\n",
            r"\"",
            r"\u00e9",
            "u",
            "d83d",
            "x",
            "é",
            r"\/",
            r"\ufffd",
        ]
    ),
    max_size=12,
).map("".join)


@settings(max_examples=1000, deadline=None)
@given(pieces)
def test_only_lone_surrogates_are_replaced(text: str) -> None:
    mended = replace_lone_surrogates(f'"{text}"'.encode())
    value = json.loads(mended)
    assert not any(0xD800 <= ord(letter) <= 0xDFFF for letter in value)
    assert value == "".join(
        "\ufffd" if 0xD800 <= ord(letter) <= 0xDFFF else letter for letter in json.loads(f'"{text}"')
    )


@given(pieces)
def test_text_without_lone_surrogates_keeps_its_bytes(text: str) -> None:
    body = f'"{text}"'.encode()
    if not any(0xD800 <= ord(letter) <= 0xDFFF for letter in json.loads(body)):
        assert replace_lone_surrogates(body) == body


@given(pieces)
def test_mending_twice_is_mending_once(text: str) -> None:
    once = replace_lone_surrogates(f'"{text}"'.encode())
    assert replace_lone_surrogates(once) == once


@pytest.mark.parametrize("text", [rb'"\ud8', rb'"\u', b'"\\', rb'"\ud83x"', rb'"\ud83d\u'])
def test_what_is_no_json_passes_for_the_decoder_to_refuse(text: bytes) -> None:
    assert replace_lone_surrogates(text)[:1] == b'"'


@given(st.binary(max_size=60))
def test_any_bytes_pass(body: bytes) -> None:
    replace_lone_surrogates(body)


def test_escapes_that_are_no_surrogates_are_not_looked_at() -> None:
    assert not has_surrogates(rb'"\u00e9\ue000\n"')
    assert has_surrogates(rb'"\uDC00"')


def test_new_id_takes_the_place_of_every_old_one() -> None:
    assert json.loads(with_id(b'{"id":"A","x":{"id":"A"},"\\u0069d":"B"}', "c")) == {
        "id": "c",
        "x": {"id": "A"},
    }
