import base64

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.errors import BadQuery
from storage.read.query.cursors import (
    MAX_GIVEN,
    EventCursor,
    IssueCursor,
    read_cursor,
    write_cursor,
)
from storage.read.query.ranges import Range

CURSOR = IssueCursor("events", 1, None, 2, -3, "00000000000000ff", None, 0, 0, is_bound=True)


def test_a_cursor_is_read_as_it_was_written() -> None:
    assert read_cursor(write_cursor(CURSOR), IssueCursor) == CURSOR
    assert read_cursor(None, IssueCursor) is None
    assert read_cursor("", IssueCursor) is None


def test_a_cursor_of_another_list_is_refused() -> None:
    with pytest.raises(BadQuery):
        read_cursor(write_cursor(CURSOR), EventCursor)


def test_numbers_that_no_column_holds_are_refused() -> None:
    forged = base64.urlsafe_b64encode(
        msgspec.msgpack.encode(["events", 1, None, 2, 1 << 63, "00000000000000ff"])
    ).decode()
    with pytest.raises(BadQuery):
        read_cursor(forged, IssueCursor)


@given(st.text(min_size=1) | st.binary(min_size=1).map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(BadQuery):
        read_cursor(text, IssueCursor)


def test_a_cursor_remembers_the_given_rows_and_the_lowest_place() -> None:
    great = (1 << 64) - 7
    first = IssueCursor.begin("events", Range(1, None), 2).after(50, [great, 9])
    assert (first.key, first.issue, first.issues) == (50, f"{9:016x}", [great, 9])
    climbed = first.after(70, [3])
    assert (climbed.key, climbed.issue, climbed.issues) == (50, f"{9:016x}", [great, 9, 3])
    lower = climbed.after(20, [4])
    assert (lower.key, lower.issue, lower.issues) == (20, f"{4:016x}", [great, 9, 3, 4])


def test_a_cursor_stays_short_enough_for_a_url() -> None:
    cursor = IssueCursor.begin("events", Range(1, None), 2).after(50, list(range(400)))
    assert len(write_cursor(cursor.after(40, list(range(400, MAX_GIVEN))))) < 6000
    long = cursor.after(40, list(range(400, 1000)))
    assert long.issues is None
    assert long.after(30, [1]).issues is None
