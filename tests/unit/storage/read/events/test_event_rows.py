"""Messages of a reader about stored content that it can't show."""

import msgspec
import pytest

from storage.read.events.event_rows import readable


def test_an_event_comes_back_as_it_was_sent() -> None:
    assert readable(1, b'{"id": 1 }') == msgspec.Raw(b'{"id": 1 }')


@pytest.mark.parametrize("stored", [b"", b"no JSON", b'{"cut'])
def test_damaged_content_is_none(stored: bytes) -> None:
    assert readable(1, stored) is None
