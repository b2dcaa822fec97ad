"""How deep an event may be does not depend on the interpreter, nor on the way that the event takes."""

import json

import msgspec
import pytest
from msgspec import Raw

from edge.validation.fast_path import BoundedEvent, valid_ids
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
def test_a_batch_does_not_take_the_short_way_with_a_deep_event(depth: int, refused: bool) -> None:
    assert (valid_ids([Raw(encoded()), Raw(with_depth(depth))]) is None) == refused


@pytest.mark.parametrize("extra", [{"more": 1}, {"fingerprint": [["nested"]]}])
def test_what_is_not_declared_or_not_flat_still_takes_the_short_way(extra: dict[str, object]) -> None:
    made = event(breadcrumbs=[], **extra)
    body = json.dumps(made).encode()
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(body, type=BoundedEvent)
    assert valid_ids([Raw(body)]) == [made["id"]]


def test_an_event_with_every_declared_field_is_bounded() -> None:
    crumb = {"timestamp": "2026-01-31T11:59:59Z", "type": "custom", "data": {"flat": 1, "none": None}}
    full = event()
    full["breadcrumbs"][-1] = crumb
    msgspec.json.decode(json.dumps(full), type=BoundedEvent)
