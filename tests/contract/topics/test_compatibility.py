"""Whoever reads the topics by the schemas of the base release can read what this version writes."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from schemas.generate.json_schema import BASE, PUBLIC, document
from tests.contract.topics.compatibility import breaking

ROOT = Path(__file__).parents[3]
SCHEMA: dict[str, Any] = {
    "$ref": "#/$defs/Order",
    "$defs": {
        "Order": {
            "type": "object",
            "required": ["id", "state"],
            "properties": {
                "id": {"type": "string", "maxLength": 8},
                "state": {"enum": ["open", "done"]},
                "count": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]},
                "parts": {"type": "array", "items": {"$ref": "#/$defs/Order"}},
                "sums": {"type": "object", "additionalProperties": {"type": "number"}},
            },
        }
    },
}


@pytest.mark.parametrize("subject", PUBLIC)
def test_no_reader_of_the_base_release_is_surprised(subject: str) -> None:
    base = ROOT / "schemas/json" / BASE / f"{subject}.json"
    assert breaking(json.loads(base.read_text(encoding="utf-8")), json.loads(document(subject))) == []


def changed(**changes: Any) -> dict[str, Any]:
    """The schema with other properties; None takes one away."""
    schema = deepcopy(SCHEMA)
    properties = schema["$defs"]["Order"]["properties"]
    for name, change in changes.items():
        if change is None:
            del properties[name]
        else:
            properties[name] = change
    return schema


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"id": None}, "/id: is missing"),
        ({"id": {"type": "string"}}, "/id: maxLength is wider"),
        ({"id": {"type": "string", "maxLength": 9}}, "/id: maxLength is wider"),
        ({"id": {"type": ["string", "null"], "maxLength": 8}}, "/id: type ['null', 'string'] instead of ['string']"),
        ({"id": {}}, "/id: type any instead of ['string']"),
        ({"state": {"enum": ["open", "done", "lost"]}}, "/state: values beyond those of const"),
        ({"count": {"anyOf": [{"type": "integer", "minimum": -1}]}}, "/count: minimum is wider"),
        ({"count": {"type": "string"}}, "/count: type ['string'] instead of ['integer']"),
        ({"parts": {"type": "array", "items": {"type": "string"}}}, "/parts/items: type ['string'] instead of ['object']"),
        ({"sums": {"type": "object", "additionalProperties": {"type": "string"}}}, "/sums/additionalProperties: type ['string'] instead of ['integer', 'number']"),
        ({"sums": {"type": "object"}}, "/sums/additionalProperties: type any instead of ['integer', 'number']"),
    ],
)  # fmt: skip
def test_what_surprises_is_found(changes: dict[str, Any], found: str) -> None:
    assert breaking(SCHEMA, changed(**changes)) == [found]


def test_a_property_that_is_no_longer_required_surprises() -> None:
    schema = changed()
    schema["$defs"]["Order"]["required"] = ["id"]
    assert breaking(SCHEMA, schema) == ["/state: may be missing"]


def test_what_a_closed_object_gets_surprises() -> None:
    closed = changed()
    closed["$defs"]["Order"]["additionalProperties"] = False
    assert breaking(closed, changed(more={"type": "string"})) == ["/more: is new, where nothing may be added"]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"more": {"type": "string"}},
        {"id": {"type": "string", "maxLength": 7}},
        {"state": {"const": "open"}},
        {"count": {"type": "null"}},
        {"sums": {"type": "object", "additionalProperties": {"type": "integer"}}},
    ],
)
def test_what_an_old_reader_can_read_is_allowed(changes: dict[str, Any]) -> None:
    assert breaking(SCHEMA, changed(**changes)) == []
