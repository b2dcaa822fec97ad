"""A segment with one fault of any kind: it costs at most the record that it hits.

The bytes of that record are accounted for.
"""

import random
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edge.delivery import segments
from edge.delivery.segments import parse

records = st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=8)


def places(given: list[bytes]) -> list[int]:
    """Where each record's frame begins, and where the last one ends."""
    found = [0]
    for record in given:
        found.append(found[-1] + 8 + len(record))
    return found


def data_of(given: list[bytes]) -> bytes:
    return b"".join(map(segments.frame, given))


@given(records, st.integers(0, 1 << 30))
@example([b"\x00\x00\x00\x01" * 4, b"x"], 4)
def test_flipped_bit_costs_at_most_the_record_that_it_hits(given: list[bytes], chosen: int) -> None:
    data = bytearray(data_of(given))
    bit = chosen % (8 * len(data))
    data[bit // 8] ^= 1 << bit % 8
    ends = places(given)[1:]
    hit = next(number for number, end in enumerate(ends) if bit // 8 < end)
    found, damaged, unfinished = parse(bytes(data))
    assert found == [record for number, record in enumerate(given) if number != hit]
    assert (damaged, unfinished) == (8 + len(given[hit]), 0)


@given(records, st.integers(0, 1 << 30))
def test_cut_tail_costs_only_the_cut_bytes_and_its_rest_is_seen(given: list[bytes], chosen: int) -> None:
    data = data_of(given)
    cut = chosen % (len(data) + 1)
    starts = places(given)
    whole = sum(end <= cut for end in starts[1:])
    assert parse(data[:cut]) == (given[:whole], 0, cut - starts[whole])


@given(records, st.integers(0, 1 << 30), st.integers(1, 40))
def test_hole_costs_at_most_the_records_that_it_hits(given: list[bytes], chosen: int, size: int) -> None:
    data = bytearray(data_of(given))
    start = chosen % len(data)
    end = min(len(data), start + size)
    data[start:end] = bytes(end - start)
    starts = places(given)
    untouched = [
        record for number, record in enumerate(given) if starts[number + 1] <= start or starts[number] >= end
    ]
    left = iter(parse(bytes(data)).records)
    assert all(record in left for record in untouched)


@given(st.lists(st.binary(max_size=40) | st.binary(min_size=1, max_size=40).map(segments.frame), max_size=6))
def test_all_bytes_of_a_segment_are_accounted_for(parts: list[bytes]) -> None:
    data = b"".join(parts)
    found, damaged, unfinished = parse(data)
    assert sum(8 + len(record) for record in found) + damaged + unfinished == len(data)


def test_record_that_holds_a_frame_is_not_searched_for_others_when_it_is_damaged() -> None:
    inner = segments.frame(b"forged")
    for behind in ([b"last"], []):
        data = bytearray(data_of([b"first", b"?" + inner + b"?", *behind]))
        data[8 + 5 + 8] ^= 1
        assert parse(bytes(data)).records == [b"first", *behind]


@pytest.mark.parametrize("fill", ["random", "zeros"])
def test_damage_is_searched_in_time_that_grows_with_the_bytes_alone(fill: str) -> None:
    """Not the product: a full segment without any sound record is looked through once, nearly without checksums."""

    def seconds(size: int) -> float:
        data = random.Random(1).randbytes(size) if fill == "random" else b"\x01" + bytes(size - 1)
        started = time.process_time()
        assert parse(data).records == []
        return time.process_time() - started

    assert seconds(1 << 22) < 40 * max(seconds(1 << 19), 0.002)
