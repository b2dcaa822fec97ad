"""Fingerprints of v1 as they were when it was made: a version is never changed, a better one is added beside it."""

import json

import msgspec
import pytest
from msgspec import Struct

from grouping.fingerprint import VERSIONS, GroupingEvent, fingerprint
from tests.unit.grouping.fingerprint.events import SAMPLES


class Golden(Struct, frozen=True):
    """An event with the fingerprint that it must always have."""

    event: msgspec.Raw
    fingerprint: str
    rule: str
    parts: tuple[str, ...]


LINES = (SAMPLES / "golden.jsonl").read_bytes().splitlines()
GOLDEN = [msgspec.json.decode(line, type=Golden) for line in LINES]


@pytest.mark.parametrize("golden", GOLDEN, ids=[str(number) for number in range(1, len(GOLDEN) + 1)])
def test_v1_stays_as_it_was(golden: Golden) -> None:
    found = fingerprint(msgspec.json.decode(golden.event, type=GroupingEvent), version="v1")
    assert (found.rule, found.parts, found.hex) == (golden.rule, golden.parts, golden.fingerprint)


def test_every_step_and_runtime_is_pinned() -> None:
    assert {golden.rule for golden in GOLDEN} == {"stack", "message", "client"}
    platforms = {json.loads(bytes(golden.event))["platform"] for golden in GOLDEN}
    assert platforms >= {"javascript", "android", "ios", "python"}
    assert len(GOLDEN) > 100


def test_the_hash_needs_nothing_of_this_process() -> None:
    # Pinned by hand: two readable parts and the number that every worker must give them.
    assert "v1" in VERSIONS
    sent = b'{"platform":"javascript","error":{"type":"E","message":"m 1","stack":[]}}'
    found = fingerprint(msgspec.json.decode(sent, type=GroupingEvent), version="v1")
    assert found.parts == ("type E", "message m <*>")
    assert found.hex == "efda83020d722f66"
