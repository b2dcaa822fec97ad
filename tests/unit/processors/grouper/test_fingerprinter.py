"""Cached errors and stacks change nothing: every event is grouped as it would be for the first time."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.demo.sample_events import FILE
from cli.send.send_batches import read_lines
from grouping.fingerprint import GroupingEvent, culprit, fingerprint
from grouping.fingerprint.event_view import decode_identified
from processors.grouper.fingerprinter import MAX_NAME, Fingerprinter
from processors.grouper.lru_cache import LruCache
from schemas.chunks import ChunkEvent
from schemas.increments import decode_description
from schemas.projects import Project, ProjectRegistry, decode_project, encode_project
from tests.unit.processors.made import START, event_id

SAMPLES = [msgspec.json.decode(line) for line in read_lines(FILE)]
decode = msgspec.json.Decoder(GroupingEvent).decode
mixes = st.lists(
    st.tuples(st.integers(0, len(SAMPLES) - 1), st.integers(0, len(SAMPLES) - 1), st.integers(0, 3)),
    max_size=30,
)


@given(mixes)
def test_earlier_events_decide_nothing(mix: list[tuple[int, int, int]]) -> None:
    """Stacks, messages and platforms of different events, put together and repeated in any way."""
    grouper = Fingerprinter(ProjectRegistry())
    for number, (one, other, what) in enumerate(mix):
        event = dict(SAMPLES[one])
        if what == 1:
            event["error"] = dict(event["error"], message=SAMPLES[other]["error"].get("message"))
        elif what == 2:
            event["error"] = dict(event["error"], stack=SAMPLES[other]["error"].get("stack"))
        elif what == 3:
            event["platform"] = SAMPLES[other].get("platform")
        body = msgspec.json.encode(event)
        _, found = grouper.group(ChunkEvent(1, event_id(number), START, "test/1", body))
        alone = fingerprint(decode(body))
        assert (found.fingerprint, found.grouping.rule, found.grouping.parts) == (
            alone.hash,
            alone.rule,
            alone.parts,
        )
        description = decode_description(found.description)
        assert description.culprit == culprit(decode(body))[:MAX_NAME]
        assert description.message == (event["error"].get("message") or "")[:1000]


@pytest.mark.parametrize("version", ["v1", "v9", ""])
def test_a_project_of_a_version_that_this_build_does_not_know_is_grouped_by_its_own(version: str) -> None:
    project = Project("1", "one", "2026-01-01T00:00:00.000Z", grouping_version=version)
    projects = ProjectRegistry()
    projects.apply(b"1", encode_project(project))
    body = msgspec.json.encode(SAMPLES[0])
    _, found = Fingerprinter(projects).group(ChunkEvent(1, event_id(1), START, "test/1", body))
    assert (found.grouping.version, found.fingerprint) == ("v1", fingerprint(decode(body)).hash)
    assert decode_project(encode_project(project)).grouping_version == version


def test_recently_used_entries_are_kept_and_the_rest_forgotten() -> None:
    recent: LruCache[int, str] = LruCache(160)
    for number in range(100):
        recent.put(number, str(number), 10)
        assert recent.get(0) == "0"
    assert recent.get(99) == "99"
    assert recent.get(50) is None
    assert len(recent) <= 32


def test_too_large_entries_are_not_kept() -> None:
    recent: LruCache[int, str] = LruCache(160)
    recent.put(1, "heavy", 11)
    assert recent.get(1) is None


def test_of_a_fingerprint_of_half_a_million_elements_a_thousand_are_read_and_a_hash_tells_the_rest() -> None:
    """Each cost a microsecond: an event that compresses to 200 bytes took the grouper half a second."""

    def group(elements: list[object]) -> int:
        body = msgspec.json.encode(SAMPLES[0] | {"fingerprint": elements})
        _, found = Fingerprinter(ProjectRegistry()).group(ChunkEvent(1, event_id(1), START, "test/1", body))
        assert fingerprint(decode_identified(body)).hash == found.fingerprint
        return found.fingerprint

    first: list[object] = [0, None, {"a": [1]}, "b", *["c"] * 996]
    groups = [*[group([*first, *[0] * 400_000, last]) for last in (0, 1)], group(first), group(first[:-1])]
    assert len(set(groups)) == len(groups)
