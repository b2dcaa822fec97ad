"""What a reader says of stored content that it can't show."""

import msgspec
import pytest

from cli.demo.sample_events import load_samples
from cli.dictionary_training import train
from schemas import payload
from storage.errors import StorageUnavailable
from storage.reader.event_rows import readable

EVENTS = [msgspec.json.encode(event) for event in load_samples()]


def test_an_event_comes_back_as_it_was_sent() -> None:
    assert readable(1, payload.compress(EVENTS[0])) == msgspec.Raw(EVENTS[0])


@pytest.mark.parametrize("frame", [b"", b"no frame", payload.compress(b'{"cut')])
def test_damaged_content_is_none(frame: bytes) -> None:
    assert readable(1, frame) is None


def test_content_whose_dictionary_is_missing_may_be_read_later() -> None:
    frame = payload.compressor(train(EVENTS, 1999, 16_384), 3).compress(EVENTS[0])
    with pytest.raises(StorageUnavailable, match="1999"):
        readable(1, frame)
