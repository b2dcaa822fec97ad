"""Validation: both paths give one verdict, any bytes end in an event or in Refused, and accepted events decode."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.validation import validate as admission
from edge.validation.validate import (
    LENIENT,
    STRICT,
    InvalidEvents,
    ValidationRules,
    checked_text,
    open_batch,
    validate,
)
from tests.edge_events import encoded, event

SAMPLES = Path(__file__).parents[4] / "cli" / "demo" / "events.jsonl.gz"
EVENTS = gzip.decompress(SAMPLES.read_bytes()).splitlines()
RULES = [STRICT, LENIENT]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    found = [path] if path else []
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        found += paths(inner, (*path, step))
    return found


PATHS = paths(event())
TIME = "2026-01-31T12:00:00.000Z"


@st.composite
def near_times(draw: st.DrawFn) -> str:
    """A time with a few of its characters changed, or more or fewer of them."""
    offset, lost = draw(st.integers(0, len(TIME))), draw(st.integers(0, 2))
    put = draw(
        st.sampled_from(["", "0", "2", "3", "9", "T", "t", " ", "Z", "z", "+00:00", "-00:00", "+0000", "\n"])
    )
    return TIME[:offset] + put + TIME[offset + lost :]


TEXTS = {
    "timestamp": near_times(),
    "release": st.text(alphabet="a1.@+/ \n", max_size=8),
}
"""Values to put in place of texts that have a form."""


@st.composite
def mutations(draw: st.DrawFn) -> bytes:
    """The full event with one to three of its values replaced or removed."""
    whole = event()
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(PATHS))
        parent: Any = whole
        try:
            for step in way:
                parent = parent[step]
            if draw(st.booleans()):
                parent[last] = draw(TEXTS.get(last, json_values))
            else:
                del parent[last]
        except (KeyError, IndexError, TypeError):
            continue
    return json.dumps(whole).encode()


def verdict(body: bytes, rules: ValidationRules) -> tuple[str, bytes] | list[str]:
    """The verdict: id and bytes, or the fields."""
    try:
        event_id, forwarded = validate(checked_text(body), rules)
    except InvalidEvents as refused:
        return [detail.field for detail in refused.details]
    return event_id, bytes(forwarded)


def opens(body: bytes) -> bool:
    """Whether it is a batch."""
    try:
        open_batch(checked_text(body))
    except InvalidEvents:
        return False
    return True


def test_every_sample_is_forwarded_as_it_came() -> None:
    assert len(EVENTS) > 100
    for line in EVENTS:
        assert verdict(line, STRICT) == (json.loads(line)["id"], line)
        assert verdict(line, LENIENT) == (json.loads(line)["id"], line)


@given(mutations(), st.sampled_from(RULES))
def test_both_paths_give_one_verdict(body: bytes, rules: ValidationRules) -> None:
    """The fast path takes no event with a violation, and the full path repairs those that it leaves without one."""
    slow = rules.violations(json.loads(body))
    if valid := rules.fast.valid_events([body]):
        assert slow == []
        assert [admission._validate_fully(body, rules)] == valid
    if not slow:
        event_id, forwarded = validate(body, rules)
        assert rules.decode(forwarded).id.lower() == event_id
        assert json.loads(bytes(forwarded)) == json.loads(body) | {"id": event_id}


@given(
    st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "surrogatepass"))
)
def test_any_bytes_end_in_an_event_or_in_refused(body: bytes) -> None:
    assert verdict(body, STRICT)
    # A batch, even an empty one, or refused: any other exception would get through.
    opens(body)


@given(json_values)
def test_any_json_ends_in_an_event_or_in_refused(value: Any) -> None:
    body = json.dumps(value).encode()
    found = verdict(body, STRICT)
    assert isinstance(found, list)
    assert 1 <= len(found) <= 20
    assert opens(body) == (isinstance(value, dict) and isinstance(value.get("events"), list))


@given(st.integers(0, len(encoded()) - 1), st.binary(min_size=1, max_size=3))
def test_any_damage_to_the_bytes_ends_in_an_event_or_in_refused(offset: int, damage: bytes) -> None:
    body = encoded()
    verdict(body[:offset] + damage + body[offset + len(damage) :], STRICT)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", "body"),
        (b"{", "body"),
        (b"nul", "body"),
        (b"{}x", "body"),
        (b"\xef\xbb\xbf{}", "body"),
        (b'{"a":\xff}', "body"),
        (b'{"a":"\xed\xa0\xbd"}', "body"),
        ('{"a":1}'.encode("utf-16"), "body"),
        (b'{"a":NaN}', "body"),
        (b'{"a":-Infinity}', "body"),
        (b'{"b":' + b"1" * 5000 + b',"a":NaN}', "body"),
        (b'{"a":01}', "body"),
        (b'{"a":"\n"}', "body"),
        (rb'{"a":"\x"}', "body"),
        (rb'{"a":"\ud83"}', "body"),
        (b'{"a":' * 20_000, "body"),
        (b'{"a":' + b"[" * 20_000 + b"]" * 20_000 + b"}", "body"),
        (b"[]", "event"),
        (b"7", "event"),
        (b"null", "event"),
        (b'"text"', "event"),
    ],
)
def test_body_that_is_no_json_object_is_refused_as_a_whole(body: bytes, field: str) -> None:
    assert verdict(body, STRICT) == [field]


@pytest.mark.parametrize(
    "odd",
    [b"1e999", b"-1e999", b"1" * 5000, b"0.1" + b"0" * 5000, b"1e-999", b"123456789012345678901234567890"],
)
def test_huge_numbers_in_free_fields_are_kept_as_sent(odd: bytes) -> None:
    for field in (b'"unknown": ', b'"fingerprint": [', b'"user": {"extra": '):
        end = {b"[": b"]", b"{": b"}"}.get(field[-1:], b"}" if b"{" in field else b"")
        body = (
            encoded()
            .replace(b'"fingerprint": ["pay", 1], ', b"")
            .replace(b'"user": {"id": "u-1", "anonymous": false}, ', b"")[:-1]
            + b", "
            + field
            + odd
            + end
            + b"}"
        )
        assert verdict(body, STRICT) == (json.loads(encoded_id(body))["id"], body)


def encoded_id(body: bytes) -> bytes:
    """The event up to its id: the rest may hold numbers that Python refuses to read."""
    return body[: body.index(b",")] + b"}"


def test_id_of_digits_alone_is_taken_as_it_is() -> None:
    body = encoded(id="01990000-0000-7000-8000-000000000000")
    assert verdict(body, STRICT) == ("01990000-0000-7000-8000-000000000000", body)


def test_upper_case_id_is_lowered_and_every_other_value_keeps_its_bytes() -> None:
    upper = "0199EE65-F275-750F-87FC-3665CC81DDA7"
    body = encoded(id=upper, tags={"same": upper}).replace(b'"kind"', b'"n": 1.50, "kind"')
    result = verdict(body, STRICT)
    assert isinstance(result, tuple)
    assert result[0] == upper.lower()
    assert json.loads(result[1]) == json.loads(body) | {"id": upper.lower()}
    assert b'"n":1.50' in result[1]
    assert b'"same": "0199EE65' in result[1]
