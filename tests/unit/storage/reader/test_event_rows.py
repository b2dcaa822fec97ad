"""What a reader says of stored content that it can't show."""

import msgspec
import pytest

from storage.errors import StorageUnavailable
from storage.reader.event_rows import readable
from tests.framed_payloads import EVENTS, framed, trained


@pytest.mark.parametrize("stored", [EVENTS[0], framed(EVENTS[0])])
def test_an_event_comes_back_as_it_was_sent(stored: bytes) -> None:
    assert readable(1, stored) == msgspec.Raw(EVENTS[0])


@pytest.mark.parametrize("stored", [b"", b"no JSON", b'{"cut', framed(b'{"cut'), framed(EVENTS[0])[:-3]])
def test_damaged_content_is_none(stored: bytes) -> None:
    assert readable(1, stored) is None


def test_content_whose_dictionary_is_missing_may_be_read_later() -> None:
    with pytest.raises(StorageUnavailable, match="1999"):
        readable(1, framed(EVENTS[0], trained(1999)))
