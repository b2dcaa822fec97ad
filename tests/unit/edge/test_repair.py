"""Lone surrogate escapes: the fast replacement agrees with a slow one that reads letter by letter."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.repair import has_surrogates, replace_lone_surrogates, with_id, with_whole_numbers

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


@pytest.mark.parametrize("shift", range(4))
@pytest.mark.parametrize("unit", [r"\ud83d\ude00", r"\n\ud83d\ude00", r"\\\ud83d\ude00x"])
def test_pairs_stay_however_long_the_text(unit: str, shift: int) -> None:
    body = ('"' + r"\t" * shift + unit * 3000 + '"').encode()
    assert replace_lone_surrogates(body) == body
    lone = body.replace(b'"', rb'"\ud83d', 1)
    assert replace_lone_surrogates(lone) == body.replace(b'"', rb'"\ufffd', 1)


numbers = st.one_of(
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(numbers | pieces.map(lambda text: f'"1.0 {text} 2e1"'), min_size=1, max_size=5),
    st.sampled_from([1, 300]),
)
def test_whole_numbers_lose_their_fraction_and_all_else_keeps_its_bytes(
    values: list[str], times: int
) -> None:
    mended = with_whole_numbers(("[" + ", ".join(values * times) + "]").encode()).decode()
    found = mended[1:-1].split(", ") if '"' not in mended else None
    for sent, got in zip(values * times, found or [], strict=bool(found)):
        value = float(sent)
        whole = not sent.lstrip("-").isdigit() and value.is_integer() and abs(value) < 2**63
        assert got == (f"{'-' if sent.startswith('-') else ''}{abs(int(value))}" if whole else sent)
    if found is None:
        unchanged = [value for value in values if value.startswith('"')]
        assert all(value in mended for value in unchanged)
    json.loads(mended)


def test_minus_zero_is_a_whole_number_too() -> None:
    assert msgspec.json.decode(with_whole_numbers(b"-0.0"), type=int) == 0
    assert msgspec.json.decode(with_whole_numbers(b"[-1.50e2,1.5,10.0e-1]")) == [-150, 1.5, 1]
