"""Lone surrogate escapes: the fast replacement agrees with a slow one that reads letter by letter."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

from edge.validation.repair import (
    INTEGER_FIELDS,
    has_surrogates,
    replace_lone_surrogates,
    with_id,
    with_whole_numbers,
)
from schemas.event import LenientEvent

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


@given(pieces)
def test_only_lone_surrogates_are_replaced(text: str) -> None:
    repaired = replace_lone_surrogates(f'"{text}"'.encode())
    value = json.loads(repaired)
    assert not any(0xD800 <= ord(letter) <= 0xDFFF for letter in value)
    assert value == "".join(
        "\ufffd" if 0xD800 <= ord(letter) <= 0xDFFF else letter for letter in json.loads(f'"{text}"')
    )


@given(pieces)
def test_text_without_lone_surrogates_keeps_its_bytes(text: str) -> None:
    body = f'"{text}"'.encode()
    if not any(0xD800 <= ord(letter) <= 0xDFFF for letter in json.loads(body)):
        assert replace_lone_surrogates(body) == body


@given(st.binary(max_size=60))
def test_any_bytes_pass(body: bytes) -> None:
    replace_lone_surrogates(body)


def test_escapes_that_are_no_surrogates_are_not_looked_at() -> None:
    assert not has_surrogates(rb'"\u00e9\ue000\n"')
    assert has_surrogates(rb'"\uDC00"')


def test_new_id_takes_the_place_of_every_old_one() -> None:
    assert json.loads(with_id(b'{"id":"A","x":{"id":"A"},"\\u0069d":"B"}', "C")) == {
        "id": "c",
        "x": {"id": "A"},
    }
    assert json.loads(with_id(b'{"\\u0069d":"A","x":{"id":"B"}}', "A")) == {"id": "a", "x": {"id": "B"}}


def test_event_whose_id_occurs_once_keeps_every_other_byte() -> None:
    assert with_id(b'{ "id" : "A", "n": 1.50 }', "A") == b'{ "id" : "a", "n": 1.50 }'


@pytest.mark.parametrize("shift", range(4))
@pytest.mark.parametrize("unit", [r"\ud83d\ude00", r"\n\ud83d\ude00", r"\\\ud83d\ude00x"])
def test_pairs_stay_however_long_the_text(unit: str, shift: int) -> None:
    body = ('"' + r"\t" * shift + unit * 30_000 + '"').encode()
    assert replace_lone_surrogates(body) == body
    lone = body.replace(b'"', rb'"\ud83d', 1)
    assert replace_lone_surrogates(lone) == body.replace(b'"', rb'"\ufffd', 1)


numbers = st.one_of(
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
)


def members(values: list[tuple[str, str]]) -> str:
    return "{" + ", ".join(f'"{name}": {value}' for name, value in values) + "}"


@given(
    st.lists(
        st.tuples(st.sampled_from([*INTEGER_FIELDS, "lines", "x", r"x\"line"]), numbers)
        | st.tuples(st.just("x"), pieces.map(lambda text: rf'"\"line\": 1.0 {text} 2e1"')),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from([1, 900]),
)
def test_whole_numbers_of_integers_lose_their_fraction_and_all_else_keeps_its_bytes(
    values: list[tuple[str, str]], times: int
) -> None:
    repaired = with_whole_numbers(members(values * times).encode()).decode()
    wanted = [(name, whole(sent) if name in INTEGER_FIELDS else sent) for name, sent in values]
    if 'x\\"line' in {name for name, _ in values}:
        # The same value too: it only looks like the name that is meant.
        assert [float(v) for _, v in found(repaired)] == [float(v) for _, v in found(members(values * times))]
    else:
        assert repaired == members(wanted * times)
    json.loads(repaired)


def found(text: str) -> list[tuple[str, str]]:
    pairs = json.loads(text, object_pairs_hook=list)
    return [(name, value) for name, value in pairs if not isinstance(value, str)]


def whole(sent: str) -> str:
    value = float(sent)
    if sent.lstrip("-").isdigit() or not value.is_integer() or abs(value) >= 2**63:
        return sent
    return f"{'-' if sent.startswith('-') else ''}{abs(int(value))}"


def test_minus_zero_is_a_whole_number_too() -> None:
    assert with_whole_numbers(b'{"status": -0.0}') == b'{"status": -0}'
    assert with_whole_numbers(b'{"status":-1.50e2,"line":1.5}') == b'{"status":-150,"line":1.5}'


def test_more_whole_numbers_than_an_event_can_have_are_left_alone() -> None:
    repaired = with_whole_numbers(b"[" + b'{"line":1.0},' * 9_000 + b"0]")
    assert (repaired.count(b'"line":1}'), repaired.count(b'"line":1.0}')) == (5_000, 4_000)


def integer_fields(kind: inspect.Type) -> set[str]:
    """Names of the integer fields at any depth of a struct."""
    names: set[str] = set()
    waiting, seen = [kind], set()
    while waiting:
        match waiting.pop():
            case inspect.StructType(cls=cls, fields=fields) if cls not in seen:
                seen.add(cls)
                for field in fields:
                    inner = field.type.types if isinstance(field.type, inspect.UnionType) else (field.type,)
                    if any(isinstance(each, inspect.IntType) for each in inner):
                        names.add(field.encode_name)
                    waiting += inner
            case inspect.Metadata(type=bare):
                waiting.append(bare)
            case inspect.ListType(item_type=item):
                waiting += item.types if isinstance(item, inspect.UnionType) else (item,)
    return names


def test_integers_are_asked_for_under_the_names_that_are_repaired() -> None:
    assert integer_fields(inspect.type_info(LenientEvent)) == set(INTEGER_FIELDS)
