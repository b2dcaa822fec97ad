"""Unknown fields of an event, and the known ones that are meant."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from schemas.unknown_fields import UnknownField, unknown_fields
from tests.edge_events import event

SAMPLES = Path(__file__).parents[3] / "cli" / "demo" / "events.jsonl.gz"


def found(value: Any) -> list[UnknownField]:
    return unknown_fields(json.dumps(value).encode())


@pytest.mark.parametrize(
    ("prefix", "typed", "meant"),
    [
        ("", "tag", "tags"), ("", "enviroment", "environment"), ("", "traceid", "traceId"), ("", "x", ""),
        ("", "user.", "user"), ("user.", "isAnonymous", "anonymous"), ("", "secret", ""), ("user.", "email", ""),
        ("device.", "os_version", "osVersion"),
        ("app.", "frame_work", "framework"), ("error.", "causes", "cause"),
    ],
)  # fmt: skip
def test_typed_field_is_found_with_the_nearest(prefix: str, typed: str, meant: str) -> None:
    value = {typed: 1}
    given = event(**({prefix[:-1]: value} if prefix else value))
    assert found(given) == [UnknownField(prefix, typed, meant)]


def test_every_sample_and_every_declared_field_is_known() -> None:
    samples = gzip.decompress(SAMPLES.read_bytes()).splitlines()
    assert samples
    assert [unknown for sample in samples for unknown in unknown_fields(sample)] == []
    whole = event(
        user={"id": "1", "name": "n", "anonymous": True, "linkHashes": {"any": "a"}}, tags={"tga": "free"}
    )
    assert found(whole) == []


@pytest.mark.parametrize("value", [None, [], "text", 1, {"user": None, "error": [{"x": 1}], "device": "x"}])
def test_what_is_no_object_has_no_fields(value: object) -> None:
    assert found(value) == []


@pytest.mark.parametrize("text", [b"", b"{", b'{"a":\xff}', b'{"tag":' + b"[" * 100_000])
def test_what_is_no_json_has_no_fields(text: bytes) -> None:
    assert unknown_fields(text) == []


def test_a_field_whose_name_is_an_object_of_the_checks_is_unknown_itself() -> None:
    assert found({"event": {"x": 1}, "": {"y": 1}}) == [
        UnknownField("", "event", ""),
        UnknownField("", "", ""),
    ]


def test_long_names_are_not_compared_and_of_many_the_first_are_returned() -> None:
    assert found({"environment" * 1000: 1})[0].nearest == ""
    assert len(found({f"tags{number}": 1 for number in range(1000)})) == 20
