"""Fingerprints as they were when the version was made: it is never edited, a better one is a new version."""

import json

import msgspec
from msgspec import Raw, Struct

from bench.grouping_pairs import events_of, read_pairs
from grouping.fingerprint import GroupingEvent, fingerprint
from schemas.projects import GROUPING_VERSION
from tests.unit.grouping.fingerprint.events import SAMPLES


class Golden(Struct, frozen=True):
    """A fingerprint that an event must always have; `event` is the event where no other file has it."""

    fingerprint: str
    rule: str
    parts: tuple[str, ...]
    event: Raw = Raw()


GOLDEN = [
    msgspec.json.decode(line, type=Golden)
    for line in (SAMPLES / f"golden_{GROUPING_VERSION}.jsonl").read_bytes().splitlines()
]
WRITTEN = [one.event for one in GOLDEN if bytes(one.event)]
EVENTS = [
    *[msgspec.json.decode(event, type=GroupingEvent) for event in WRITTEN],
    *[event for pair in read_pairs() for event in events_of(pair)],
]


def test_the_version_stays_as_it_was() -> None:
    for event, known in zip(EVENTS, GOLDEN, strict=True):
        found = fingerprint(event)
        assert (found.rule, found.parts, found.hex) == (known.rule, known.parts, known.fingerprint)


def test_every_step_and_runtime_is_pinned() -> None:
    assert len(WRITTEN) > 100
    assert {one.rule for one in GOLDEN} == {"stack", "message", "client"}
    platforms = {json.loads(bytes(event))["platform"] for event in WRITTEN}
    assert platforms >= {"javascript", "android", "ios", "python"}


def test_the_hash_needs_nothing_of_this_process() -> None:
    # Pinned by hand: two readable parts and the number that every worker must give them.
    sent = b'{"platform":"javascript","error":{"type":"E","message":"m 1","stack":[]}}'
    found = fingerprint(msgspec.json.decode(sent, type=GroupingEvent))
    assert found.parts == ("type E", "message m <*>")
    assert found.hex == "efda83020d722f66"
