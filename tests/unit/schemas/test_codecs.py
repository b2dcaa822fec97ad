"""Every record that crosses a topic decodes to the encoded value."""

import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from schemas import change_records, chunks, dead_letters, issues, projects

texts = st.text(max_size=30)
numbers = st.integers(0, (1 << 64) - 1)
chunk_events = st.builds(
    chunks.ChunkEvent,
    st.integers(0, (1 << 32) - 1),
    st.binary(min_size=16, max_size=16),
    st.integers(0, 1 << 45),
    texts,
    st.binary(max_size=60),
)
groupings = st.builds(chunks.Grouping, numbers, texts, texts, st.lists(texts, max_size=3).map(tuple))


@given(st.lists(chunk_events, max_size=5))
def test_a_chunk_round_trips(events: list[chunks.ChunkEvent]) -> None:
    assert chunks.decode_chunk(chunks.encode_chunk(events)) == events


@given(st.lists(chunk_events, max_size=3), st.lists(groupings, max_size=3), numbers)
def test_a_record_of_grouped_round_trips(
    events: list[chunks.ChunkEvent], found: list[chunks.Grouping], offset: int
) -> None:
    kept, chunk = list(range(len(events))), chunks.encode_chunk(events)
    whole = chunks.GroupedRecord(1, offset, 5, kept, [0 for _ in kept], found, kept, {}, kept, chunk)
    assert chunks.decode_grouped(chunks.encode_grouped(whole)) == whole


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{}",
        msgspec.msgpack.encode([]),
        zstandard.compress(b"{}"),
        chunks.encode_chunk([])[:-1],
        zstandard.compress(bytes(1 << 27)),
    ],
)
def test_a_damaged_chunk_is_declared_so(value: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        chunks.decode_chunk(value)


texts_and_numbers = st.dictionaries(texts, texts | st.integers(-(1 << 53), 1 << 53) | st.none(), max_size=3)
# Fields of any JSON, and defaults that are factories, need a strategy by hand.
st.register_type_strategy(
    issues.IssueRecord, st.builds(issues.IssueRecord, ignore_until=st.none() | texts_and_numbers)
)
st.register_type_strategy(issues.Activity, st.builds(issues.Activity, data=texts_and_numbers))
st.register_type_strategy(issues.Command, st.builds(issues.Command, data=texts_and_numbers))
st.register_type_strategy(
    issues.DeltaRecord,
    st.builds(
        issues.DeltaRecord,
        command=st.none() | st.from_type(issues.Command),
    ),
)

strategies = {
    issues.IssueRecord: issues.decode_issue,
    issues.Activity: issues.decode_activity,
    change_records.Change: change_records.decode_change,
    issues.Outcome: msgspec.json.Decoder(issues.Outcome).decode,
    issues.DeltaRecord: issues.decode_delta,
    projects.Project: projects.decode_project,
}


@pytest.mark.parametrize("struct", strategies, ids=lambda s: s.__name__)
@given(data=st.data())
def test_a_record_round_trips(struct: type[msgspec.Struct], data: st.DataObject) -> None:
    value = data.draw(st.from_type(struct))
    assert strategies[struct](issues.encode_json(value)) == value


@given(
    st.builds(dead_letters.DeadLetter, texts, st.integers(0), st.integers(0), texts, texts, texts, texts),
    st.lists(st.tuples(st.sampled_from(["format", "source"]), st.binary(max_size=9)), max_size=2),
)
def test_a_dead_letter_keeps_its_origin_and_the_originals_headers(
    letter: dead_letters.DeadLetter, original: list[tuple[str, bytes]]
) -> None:
    assert dead_letters.from_headers(letter.headers(original)) == (letter, original)


def test_a_record_without_our_headers_is_no_dead_letter() -> None:
    with pytest.raises(ValueError, match="dead-letter-topic"):
        dead_letters.from_headers([("format", b"chunk-1")])
