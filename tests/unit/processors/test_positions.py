from hypothesis import given
from hypothesis import strategies as st

from processors.positions import OffsetRange, Step, first_hole, step


def test_the_offset_that_is_due_is_next() -> None:
    assert step(7, 7) is Step.NEXT


def test_an_earlier_offset_is_a_repeat() -> None:
    assert step(7, 6) is Step.REPEAT


def test_a_later_offset_is_a_gap() -> None:
    assert step(7, 8) is Step.GAP


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9))), st.integers(0, 60))
def test_the_first_hole_is_the_first_offset_that_no_span_covers(
    made: list[tuple[int, int]], start: int
) -> None:
    spans = [OffsetRange(first, first + more) for first, more in made]
    covered = {offset for span in spans for offset in range(span.first, span.last + 1)}
    hole = start
    while hole in covered:
        hole += 1
    assert first_hole(spans, start) == hole
