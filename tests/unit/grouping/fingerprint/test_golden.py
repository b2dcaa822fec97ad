"""Fingerprints of each version as they were when it was made: a version is never changed, a better one is added beside it."""

import json

import msgspec
import pytest
from msgspec import Raw, Struct

from bench.grouping_pairs import events_of, read_pairs
from grouping.fingerprint import VERSIONS, GroupingEvent, fingerprint
from tests.unit.grouping.fingerprint.events import SAMPLES


class Golden(Struct, frozen=True):
    """A fingerprint that an event must always have; `event` is the event where no other file has it."""

    fingerprint: str
    rule: str
    parts: tuple[str, ...]
    event: Raw = Raw()


def golden(version: str) -> list[Golden]:
    lines = (SAMPLES / f"golden_{version}.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Golden) for line in lines]


GOLDEN = {version: golden(version) for version in VERSIONS}
WRITTEN = [one.event for one in GOLDEN["v1"] if bytes(one.event)]
EVENTS = [
    *[msgspec.json.decode(event, type=GroupingEvent) for event in WRITTEN],
    # What version 2 was made for; version 1 is pinned by the others.
    *[event for pair in read_pairs() for event in events_of(pair)],
]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_version_stays_as_it_was(version: str) -> None:
    assert len(GOLDEN[version]) > 100
    for event, known in zip(EVENTS, GOLDEN[version], strict=version == "v2"):
        found = fingerprint(event, version=version)
        assert (found.rule, found.parts, found.hex) == (known.rule, known.parts, known.fingerprint)


def test_every_step_and_runtime_is_pinned() -> None:
    for of_version in GOLDEN.values():
        assert {one.rule for one in of_version} == {"stack", "message", "client"}
    platforms = {json.loads(bytes(event))["platform"] for event in WRITTEN}
    assert platforms >= {"javascript", "android", "ios", "python"}


def test_the_hash_needs_nothing_of_this_process() -> None:
    # Pinned by hand: two readable parts and the number that every worker must give them.
    assert "v1" in VERSIONS
    sent = b'{"platform":"javascript","error":{"type":"E","message":"m 1","stack":[]}}'
    found = fingerprint(msgspec.json.decode(sent, type=GroupingEvent), version="v1")
    assert found.parts == ("type E", "message m <*>")
    assert found.hex == "efda83020d722f66"
