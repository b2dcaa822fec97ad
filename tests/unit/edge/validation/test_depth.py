"""How deep an event may be does not depend on the interpreter, nor on the way that the event takes."""

import json

import msgspec
import pytest
from msgspec import Raw, Struct

from edge.validation.fast_path import UncheckedEvent, UncheckedLenientEvent, bounded
from edge.validation.validate import LENIENT, STRICT, InvalidEvents, ValidationRules, validate
from schemas.limits import MAX_DEPTH
from tests.edge_events import encoded, event

# An event with such a value in a field that nothing declares.
DEPTHS = [(MAX_DEPTH, False), (MAX_DEPTH + 1, True), (2000, True), (100_000, True)]


def with_depth(depth: int) -> bytes:
    return encoded()[:-1] + b', "deep": ' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


@pytest.mark.parametrize(("depth", "refused"), DEPTHS)
@pytest.mark.parametrize("rules", [STRICT, LENIENT])
@pytest.mark.parametrize("crowd", [b"", b', "more": [' + b"1," * 40_000 + b"1]"])
def test_an_event_is_taken_down_to_the_limit(
    depth: int, refused: bool, rules: ValidationRules, crowd: bytes
) -> None:
    body = with_depth(depth)[:-1] + crowd + b"}"
    if not refused:
        assert validate(body, rules)[1] == body
        return
    with pytest.raises(InvalidEvents) as caught:
        validate(body, rules)
    assert [(each.field, each.message) for each in caught.value.details] == [
        ("body", "JSON is nested too deeply")
    ]


@pytest.mark.parametrize(("depth", "refused"), DEPTHS)
@pytest.mark.parametrize("rules", [STRICT, LENIENT])
def test_a_batch_does_not_take_the_fast_path_with_a_deep_event(
    depth: int, refused: bool, rules: ValidationRules
) -> None:
    assert (rules.fast.valid_events([Raw(encoded()), Raw(with_depth(depth))]) is None) == refused


@pytest.mark.parametrize("rules", [STRICT, LENIENT])
def test_causes_deeper_than_a_decoder_can_follow_are_too_deep(rules: ValidationRules) -> None:
    error = '{"type":"E","message":"","stack":[],"cause":' * 1_400 + "null" + "}" * 1_400
    body = json.dumps(event(error="CUT")).replace('"CUT"', error).encode()
    assert rules.fast.valid_events([body]) is None
    with pytest.raises(InvalidEvents, match="JSON is nested too deeply"):
        validate(body, rules)


@pytest.mark.parametrize("extra", [{"more": 1}, {"fingerprint": [["nested"]]}])
def test_undeclared_or_nested_fields_still_take_the_fast_path(extra: dict[str, object]) -> None:
    made = event(breadcrumbs=[], **extra)
    body = json.dumps(made).encode()
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(body, type=bounded(UncheckedEvent))
    assert STRICT.fast.valid_events([body]) == [(made["id"], body)]


@pytest.mark.parametrize("kind", [UncheckedEvent, UncheckedLenientEvent])
def test_an_event_with_every_declared_field_is_bounded(kind: type[Struct]) -> None:
    crumb = {"timestamp": "2026-01-31T11:59:59Z", "type": "custom", "data": {"flat": 1, "none": None}}
    full = event()
    full["breadcrumbs"][-1] = crumb
    msgspec.json.decode(json.dumps(full), type=bounded(kind))
