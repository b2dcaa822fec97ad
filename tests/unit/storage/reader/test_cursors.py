import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.reader.cursors import EventCursor, IssueCursor, read_cursor, write_cursor
from storage.reader.errors import BadQuery

CURSOR = IssueCursor("events", 1, None, 2, -3, "00000000000000ff")


def test_a_cursor_is_read_as_it_was_written() -> None:
    assert read_cursor(write_cursor(CURSOR), IssueCursor) == CURSOR
    assert read_cursor(None, IssueCursor) is None
    assert read_cursor("", IssueCursor) is None


def test_a_cursor_of_another_list_is_refused() -> None:
    with pytest.raises(BadQuery):
        read_cursor(write_cursor(CURSOR), EventCursor)


def test_numbers_that_no_column_holds_are_refused() -> None:
    forged = base64.urlsafe_b64encode(b'["events",1,null,2,1e40,"00000000000000ff"]').decode()
    with pytest.raises(BadQuery):
        read_cursor(forged, IssueCursor)


@given(st.text(min_size=1) | st.binary(min_size=1).map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(BadQuery):
        read_cursor(text, IssueCursor)
