import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.times import DAY_MS, HOUR_MS
from storage.errors import BadQuery
from storage.read.query.ranges import Range, cut, resolve_range

NOW_MS = 1_790_003_723_456
moments = st.integers(0, 40 * DAY_MS)


@given(moments, st.integers(1, 5 * DAY_MS), st.sampled_from([HOUR_MS, DAY_MS]))
def test_the_pieces_of_a_range_are_the_range_and_nothing_twice(
    start: int, length: int, smallest: int
) -> None:
    span = Range(start, start + length)
    pieces = cut(span, smallest)
    ordered = sorted((*pieces.days, *pieces.hours, *pieces.edges), key=lambda piece: piece.start)
    assert ordered[0].start == span.start
    assert ordered[-1].end == span.end
    assert all(one.end == two.start for one, two in itertools.pairwise(ordered))
    assert all(p.start % DAY_MS == 0 and p.end is not None and p.end % DAY_MS == 0 for p in pieces.days)
    assert all(p.start % HOUR_MS == 0 and p.end is not None and p.end % HOUR_MS == 0 for p in pieces.hours)
    assert not (smallest == DAY_MS and pieces.hours)
    assert all(p.end is not None and 0 < p.end - p.start < 2 * smallest for p in pieces.edges)


@given(moments, st.sampled_from([HOUR_MS, DAY_MS]))
def test_a_range_without_an_end_is_whole_units_from_some_moment_on(start: int, smallest: int) -> None:
    pieces = cut(Range(start, None), smallest)
    assert [piece.end for piece in pieces.days] == [None]
    assert len(pieces.edges) <= 1


def test_a_range_begins_by_default_at_the_full_hour_14_days_before_its_end() -> None:
    assert resolve_range(None, None, NOW_MS) == Range(NOW_MS // HOUR_MS * HOUR_MS - 14 * DAY_MS, None)
    assert resolve_range(None, DAY_MS * 20, NOW_MS) == Range(DAY_MS * 6, DAY_MS * 20)
    assert resolve_range(None, 5, NOW_MS) == Range(0, 5)


@pytest.mark.parametrize(("start", "end", "field"), [(5, 5, "end"), (-1, None, "start"), (0, 1 << 62, "end")])
def test_ranges_that_are_none_are_refused(start: int, end: int | None, field: str) -> None:
    with pytest.raises(BadQuery) as refused:
        resolve_range(start, end, NOW_MS)
    assert refused.value.field == field
