"""The decisions about a batch: the same records give the same output, from any earlier position."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from processors.grouper.batch import BatchOutput, PartitionState, decide, read_batch
from processors.grouper.dedup_log import DedupEntry, decode_entry, encode
from processors.grouper.dedupe import Dedupe
from processors.grouper.fingerprinter import Fingerprinter
from processors.grouper.replay_start import replay_start
from processors.positions import SourceRecord, new_records
from schemas.chunks import (
    EVENTS_FORMAT,
    FORMAT_HEADER,
    ChunkEvent,
    decode_grouped,
    encode_chunk,
)
from schemas.projects import GroupingRule, OwnerRule, encode_project
from tests.unit.processors.grouper.grouper_world import no_steps, registry
from tests.unit.processors.made import START, carried, event_id, source

DAYS = 7
PARTITION = 3


def broken(number: int, ms: int = START) -> ChunkEvent:
    """An event whose payload can't be read."""
    return ChunkEvent(1, event_id(number, ms), START, "test/1", b"no frame")


def fresh(next_offset: int = 0) -> PartitionState:
    return PartitionState(PARTITION, Dedupe(DAYS), next_offset, {})


def run(
    state: PartitionState, sources: list[SourceRecord], grouper: Fingerprinter | None = None
) -> BatchOutput:
    output = BatchOutput(PARTITION, grouped_events=True)
    records = new_records("events", state.partition, state.next_offset, sources)
    for _ in decide(state, read_batch(state, records), grouper or Fingerprinter(registry()), output):
        pass
    return output


def forwarded(output: BatchOutput) -> list[tuple[int, bytes]]:
    """Offset and id of each event in `grouped`."""
    records = [decode_grouped(message.value or b"") for message in output.grouped]
    found = [(one.offset, one.event.id) for one in output.grouped_events or []]
    assert [(record.offset, len(record.kept)) for record in records] == list(
        Counter(o for o, _ in found).items()
    )
    return found


def published(outputs: list[BatchOutput]) -> list[Any]:
    """All outputs but entries, in order."""
    return [
        [message for e in outputs for message in e.grouped],
        [increments for e in outputs for increments in e.increments],
        [outcome for e in outputs for found in e.outcomes.values() for outcome in found],
        [(bad.offset, bad.value, bad.headers) for e in outputs for bad in e.dead],
    ]


def test_a_new_event_is_forwarded_with_its_source_position() -> None:
    output = run(fresh(5), [source(5, [carried(1), carried(2, kind=1), carried(1)])])
    grouped = decode_grouped(output.grouped[0].value or b"")
    assert (grouped.partition, grouped.offset, grouped.kept) == (PARTITION, 5, [0, 1])
    assert grouped.grouping_of == [0, 1]
    assert dict(output.grouped[0].headers)["source"] == b"3/5"


@pytest.mark.parametrize(
    ("value", "headers", "reason"),
    [
        (b"\xc1", [(FORMAT_HEADER, EVENTS_FORMAT)], "not a chunk"),
        (b"\x90", [(FORMAT_HEADER, EVENTS_FORMAT)], "not a chunk"),
        (encode_chunk([]), [], "no format header"),
        (encode_chunk([]), [(FORMAT_HEADER, b"chunk-9")], "unknown format b'chunk-9'"),
        (encode_chunk([(1, b"x", 1, "s", b"")]), [(FORMAT_HEADER, EVENTS_FORMAT)], "bad id"),
    ],
)
def test_a_record_that_is_no_chunk_is_dead_lettered_and_the_next_goes_on(
    value: bytes, headers: list[tuple[str, bytes]], reason: str
) -> None:
    output = run(fresh(), [SourceRecord(0, START, b"k", value, headers), source(1, [carried(1)])])
    assert reason in output.dead[0].reason
    assert (output.dead[0].key, output.dead[0].value, output.dead[0].headers) == (b"k", value, headers)
    assert forwarded(output) == [(1, carried(1).id)]
    assert [r.offset for r in output.entries[0].records] == [0, 1]


def test_an_event_that_a_rule_discards_goes_no_further_and_is_counted() -> None:
    grouper = Fingerprinter(registry([GroupingRule(name="noise", match="type:Kind7Error", discard=True)]))
    state = fresh()
    output = run(state, [source(0, [carried(1, kind=7), carried(2)])], grouper)
    assert forwarded(output) == [(0, carried(2).id)]
    assert [(o.outcome, o.reason) for o in output.outcomes[1] if o.outcome == "deadLettered"] == [
        ("deadLettered", "discarded")
    ]
    assert output.dead == []
    assert run(state, [source(1, [carried(1, kind=7)])], grouper).duplicates == 1


logs = st.lists(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4)), min_size=0, max_size=5),
    min_size=1,
    max_size=12,
)


def copy(number: int, kind: int) -> ChunkEvent:
    """An event of a kind; the payload of the last kind can't be read."""
    return broken(number) if kind == 4 else carried(number, kind=kind)


@given(logs, st.lists(st.tuples(st.integers(1, 4), st.booleans()), max_size=20))
def test_crash_upon_crash_every_record_is_forwarded_as_it_was_decided(
    log: list[list[tuple[int, int]]], batches: list[tuple[int, bool]]
) -> None:
    sources = [source(o, [copy(n, k) for n, k in events]) for o, events in enumerate(log)]
    state, entries, sent = fresh(), list[DedupEntry](), list[BatchOutput]()
    for size, crash in [*batches, (len(sources), False)]:
        output = run(state, sources[state.next_offset : state.next_offset + size])
        entries += [decode_entry(encode(entry)) for entry in output.entries]
        if not crash:
            sent.append(output)
            continue
        resumed = replay_start(entries, 0)
        state = fresh(resumed.next_offset or 0)
        state.dedupe.restore(entries)
        state.decided = resumed.decided
    # As a consumer takes it: positions up to the last one are repeats.
    taken, last = list[tuple[int, bytes]](), -1
    for output in sent:
        some = [one for one in forwarded(output) if one[0] > last]
        taken += some
        last = max([last, *(offset for offset, _ in some)])
    assert taken == forwarded(run(fresh(), sources))


@given(logs, st.lists(st.integers(1, 4), max_size=6), st.data(), st.booleans())
def test_a_replay_from_any_earlier_position_gives_the_same_output(
    log: list[list[tuple[int, int]]], sizes: list[int], data: st.DataObject, recorded: bool
) -> None:
    """The decisions after that position are still recorded, or are made again from earlier records."""
    sources = [source(o, [copy(n, k) for n, k in events]) for o, events in enumerate(log)]
    state, entries = fresh(), list[DedupEntry]()
    for size in [*sizes, len(sources)]:
        output = run(state, sources[state.next_offset : state.next_offset + size])
        entries += [decode_entry(encode(entry)) for entry in output.entries]
    back = data.draw(st.integers(0, len(sources)))
    records = [record for entry in entries for record in entry.records]
    kept = records if recorded else records[:back]
    again = fresh(back)
    again.dedupe.restore([DedupEntry(START, 0, kept)] if kept else [])
    again.decided = {record.offset: record for record in kept if record.offset >= back}
    before = run(fresh(), sources[:back])
    assert published([before, run(again, sources[back:])]) == published([run(fresh(), sources)])


@given(logs)
def test_each_id_is_forwarded_once(log: list[list[tuple[int, int]]]) -> None:
    sources = [source(o, [copy(n, k) for n, k in events]) for o, events in enumerate(log)]
    ids = [found for _, found in forwarded(run(fresh(), sources))]
    # Within a chunk, the first copy of an id counts.
    firsts = [dict(reversed(events)) for events in log]
    assert len(ids) == len(set(ids)) == len({n for first in firsts for n, kind in first.items() if kind != 4})


def test_rules_that_were_skipped_are_told_apart_from_the_outcomes_and_the_same_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    no_steps(monkeypatch)
    rules = Fingerprinter(registry([GroupingRule(name="dear", match="type:X", fingerprint=("x",))]))
    sources = [source(0, [carried(1), carried(1), carried(2)]), source(1, [carried(3)])]
    output = run(fresh(), sources, rules)
    assert [o.outcome for found in output.outcomes.values() for o in found] == [
        "accepted",
        "duplicate",
        "accepted",
    ]
    forwarded = [one for _, found in output.rules_skipped for one in found]
    assert [(o.outcome, o.reason, o.count, o.source, o.sequence) for o in forwarded] == [
        ("ruleSkipped", "tooExpensive/dear", 2, "grouper/3", 0),
        ("ruleSkipped", "tooExpensive/dear", 1, "grouper/3", 1),
    ]
    # After a crash the same records are handled in other batches.
    entries = [decode_entry(encode(entry)) for entry in output.entries]
    decided = {record.offset: record for entry in entries for record in entry.records}
    again = PartitionState(PARTITION, Dedupe(DAYS), 0, decided)
    repeated = [run(again, [one], rules) for one in sources]
    assert [one for e in repeated for _, found in e.rules_skipped for one in found] == forwarded


def owners_of(output: BatchOutput) -> list[tuple[int, str]]:
    """Offset and owner of each increment."""
    return [(source.offset, one.owner) for source in output.increments for one in source.increments]


def test_an_increment_names_the_owner_of_its_first_event() -> None:
    owners = [OwnerRule("file:src/1.js", "zoe"), OwnerRule("type:Kind*", "ann"), OwnerRule("type:", "eve")]
    grouper = Fingerprinter(registry(owners=owners))
    events = [carried(1), carried(2, kind=1), carried(3), carried(4, kind=1, project=2)]
    output = run(fresh(), [source(0, events), source(1, [carried(5, kind=1)])], grouper)
    assert owners_of(output) == [(0, "ann"), (0, "zoe"), (0, ""), (1, "zoe")]


def test_owners_are_asked_once_for_a_fingerprint_of_a_record_and_never_change_its_grouping(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    no_steps(monkeypatch)
    dear = Fingerprinter(registry(owners=[OwnerRule("type:X", "zoe")]))
    events = [source(0, [carried(1), carried(2)]), source(1, [carried(3, kind=1)])]
    output = run(fresh(), events, dear)
    assert owners_of(output) == [(0, ""), (1, "")]
    skipped = [(one.sequence, one.reason, one.count) for _, found in output.rules_skipped for one in found]
    assert skipped == [(0, "tooExpensive/owner zoe", 1), (1, "tooExpensive/owner zoe", 1)]
    assert output.grouped == run(fresh(), events).grouped


def test_an_event_counts_though_its_owner_cannot_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("processors.grouper.fingerprinter.from_json")
    output = run(fresh(), [source(0, [carried(1)])], Fingerprinter(registry(owners=[OwnerRule("X", "zoe")])))
    assert owners_of(output) == [(0, "")]
    assert [one.reason for _, found in output.rules_skipped for one in found] == ["failed/owner"]


def test_owners_follow_the_project() -> None:
    projects = registry(owners=[OwnerRule("type:Kind*", "ann"), OwnerRule("type:(", "eve")])
    grouper = Fingerprinter(projects)
    assert owners_of(run(fresh(), [source(0, [carried(1)])], grouper)) == [(0, "ann")]
    [project] = projects
    projects.apply(b"1", encode_project(replace(project, owners=(OwnerRule("type:Kind*", "bob"),))))
    assert owners_of(run(fresh(), [source(0, [carried(1)])], grouper)) == [(0, "bob")]
    projects.apply(b"1", encode_project(replace(project, owners=())))
    assert owners_of(run(fresh(), [source(0, [carried(1)])], grouper)) == [(0, "")]


def test_the_retention_is_decided_with_the_fingerprint() -> None:
    projects = registry()
    [message] = run(fresh(), [source(0, [carried(1)])], Fingerprinter(projects)).grouped
    assert decode_grouped(message.value or b"").retention == {1: (90, 90)}
