"""Training a payload dictionary and telling what it is good for, on events that it was not trained on. Pure."""

import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

import zstandard
from msgspec import Struct

from schemas.payload import OWN_LEVEL, compressor
from schemas.payload_dictionaries import ID_BASE

SIZES: Final = (65_536, 112_640)
"""Bytes of the dictionaries that are tried. Larger ones were worse on real events, and each process holds it in memory."""
_HELD_OUT: Final = 5
"""One issue in five is kept from the training."""
Event = bytes


class Split(Struct, frozen=True):
    """Events to train on, further events of the same issues, and events of issues of which none is trained on."""

    training: list[Event]
    known: list[Event]
    unknown: list[Event]


class TrainedDictionary(Struct, frozen=True):
    """A dictionary, and mean bytes of an event that the training did not see, of issues that it did and did not see."""

    content: bytes
    known: float
    unknown: float

    @property
    def mean(self) -> float:
        """What dictionaries are compared by: both kinds count the same."""
        return (self.known + self.unknown) / 2


def split(events: Iterable[tuple[int, Event]]) -> Split:
    """Divide pairs of an issue's fingerprint and an event."""
    by_issue = defaultdict[int, list[Event]](list)
    for fingerprint, event in events:
        by_issue[fingerprint].append(event)
    # A fingerprint is a hash: their order is as good as a drawn one.
    issues = [by_issue[fingerprint] for fingerprint in sorted(by_issue)]
    training, known, unknown = list[Event](), list[Event](), list[Event]()
    for number, found in enumerate(issues):
        if number % _HELD_OUT == 0:
            unknown += found
        else:
            training += found[:-1] or found
            known += found[len(found) - 1 :] if len(found) > 1 else []
    return Split(training, known, unknown)


def train(events: Sequence[Event], number: int, size: int) -> bytes:
    """A dictionary of about `size` bytes with the id of its number. Raises ValueError for too few events."""
    # The trainer judges by the last of the samples: they must be mixed, and equal events must give an equal dictionary.
    samples: list[bytes | bytearray | memoryview[int]] = [*sorted(events, key=zlib.crc32)]
    try:
        return zstandard.train_dictionary(size, samples, dict_id=ID_BASE + number, level=OWN_LEVEL).as_bytes()
    except zstandard.ZstdError as error:
        raise ValueError(f"{len(samples)} events are too few or too alike: {error}") from None


def measure(content: bytes, parts: Split, level: int = OWN_LEVEL) -> TrainedDictionary:
    """How small a dictionary makes the events that were kept from the training."""
    compress = compressor(content, level).compress
    known, unknown = (
        sum(len(compress(event)) for event in part) / max(1, len(part))
        for part in (parts.known or parts.unknown, parts.unknown)
    )
    return TrainedDictionary(content, known, unknown)


def best(parts: Split, number: int) -> TrainedDictionary:
    """The best of the sizes that are tried. Raises ValueError for too few events."""
    return min(
        (measure(train(parts.training, number, size), parts) for size in SIZES), key=lambda one: one.mean
    )
