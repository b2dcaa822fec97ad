import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.grouper.replay_start import first_hole
from processors.positions import OffsetGap, new_records
from tests.unit.processors.made import source


def offsets(next_offset: int, *delivered: int) -> list[int]:
    return [
        record.offset for record in new_records("events", 0, next_offset, [source(o, []) for o in delivered])
    ]


def test_the_next_offset_and_its_successors_are_new() -> None:
    assert offsets(7, 7, 8) == [7, 8]


def test_an_earlier_offset_is_a_repeat() -> None:
    assert offsets(7, 6, 7, 7, 6, 8) == [7, 8]


def test_a_later_offset_is_a_gap() -> None:
    with pytest.raises(OffsetGap, match="events/0: expected offset 8, got 9"):
        offsets(7, 7, 9)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9))), st.integers(0, 60))
def test_the_first_hole_is_the_first_offset_that_no_range_covers(
    made: list[tuple[int, int]], start: int
) -> None:
    ranges = [(first, first + more) for first, more in made]
    covered = {offset for first, last in ranges for offset in range(first, last + 1)}
    hole = start
    while hole in covered:
        hole += 1
    assert first_hole(ranges, start) == hole
