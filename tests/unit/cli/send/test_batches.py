"""Batches: within the endpoint's limits, in order, without duplicates."""

import gzip
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from cli.send.send_batches import HEAD, MAX_BYTES, MAX_EVENTS, TAIL, batches, read_lines

EVENT = st.one_of(
    st.integers(1, 400_000).map(lambda size: b'"' + b"x" * size + b'"'), st.just(b"{}"), st.just(b"{not json")
)


@given(st.lists(EVENT, max_size=250))
def test_events_come_out_once_in_order_within_the_limits(events: list[bytes]) -> None:
    made = list(batches(events))
    assert [event for batch in made for event in batch.events] == events
    at = 0
    for batch in made:
        assert batch.first == at
        at += len(batch.events)
        assert 1 <= len(batch.events) <= MAX_EVENTS
        size = len(HEAD) + len(TAIL) + sum(len(event) + 1 for event in batch.events)
        assert size <= MAX_BYTES or len(batch.events) == 1


def test_event_that_is_no_json_does_not_spoil_its_neighbours() -> None:
    made = list(batches([b"{}", b"{", b"{}"]))
    assert [batch.events for batch in made] == [(b"{}",), (b"{",), (b"{}",)]


def test_plain_and_gzipped_files_give_the_same_lines_without_empty_ones(tmp_path: Path) -> None:
    plain, packed = tmp_path / "e.jsonl", tmp_path / "e.jsonl.gz"
    plain.write_bytes(b'{"a":1}\n\n{"b":2}')
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert list(read_lines(plain)) == list(read_lines(packed)) == [b'{"a":1}', b'{"b":2}']


def test_progress_covers_the_whole_file(tmp_path: Path) -> None:
    file = tmp_path / "e.jsonl"
    file.write_bytes(b"{}\n" * 5000)
    reported: list[int] = []
    list(read_lines(file, reported.append))
    assert sum(reported) == file.stat().st_size
