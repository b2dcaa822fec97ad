"""Trains a payload dictionary and evaluates it on events outside the training set. No I/O."""

import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

import zstandard
from msgspec import Struct

from schemas.payload import OWN_LEVEL, compressor
from schemas.payload_dictionaries import ID_BASE

SIZES: Final = (65_536, 112_640)
"""Candidate dictionary sizes in bytes. Larger ones were worse on real events, and every process holds one in memory."""
_HELD_OUT: Final = 5
"""One issue in five is excluded from the training."""
Event = bytes


class Split(Struct, frozen=True):
    """Training events, other events of the same issues, and events of issues outside the training set."""

    training: list[Event]
    known: list[Event]
    unknown: list[Event]


class TrainedDictionary(Struct, frozen=True):
    """A dictionary, and the mean size of held-out events of known and of unknown issues."""

    content: bytes
    known: float
    unknown: float

    @property
    def mean(self) -> float:
        """The score of the dictionary: known and unknown issues have equal weight."""
        return (self.known + self.unknown) / 2


def split(events: Iterable[tuple[int, Event]]) -> Split:
    """Split pairs of fingerprint and event."""
    by_issue = defaultdict[int, list[Event]](list)
    for fingerprint, event in events:
        by_issue[fingerprint].append(event)
    # A fingerprint is a hash: sorting by it is as good as a random order.
    issues = [by_issue[fingerprint] for fingerprint in sorted(by_issue)]
    training, known, unknown = list[Event](), list[Event](), list[Event]()
    for number, issue_events in enumerate(issues):
        if number % _HELD_OUT == 0:
            unknown += issue_events
        else:
            training += issue_events[:-1] or issue_events
            known += issue_events[-1:] if len(issue_events) > 1 else []
    return Split(training, known, unknown)


def train(events: Sequence[Event], number: int, size: int) -> bytes:
    """Train a dictionary of about `size` bytes. Raises ValueError for too few events."""
    # The trainer evaluates on the last samples, so they must be mixed; deterministically, for a reproducible result.
    samples: list[bytes | bytearray | memoryview[int]] = [*sorted(events, key=zlib.crc32)]
    try:
        return zstandard.train_dictionary(size, samples, dict_id=ID_BASE + number, level=OWN_LEVEL).as_bytes()
    except zstandard.ZstdError as error:
        raise ValueError(f"{len(samples)} events are too few or too alike: {error}") from None


def measure(content: bytes, parts: Split, level: int = OWN_LEVEL) -> TrainedDictionary:
    """Measure a dictionary on the held-out events."""
    compress = compressor(content, level).compress
    known, unknown = (
        sum(len(compress(event)) for event in part) / max(1, len(part))
        for part in (parts.known or parts.unknown, parts.unknown)
    )
    return TrainedDictionary(content, known, unknown)


def best(parts: Split, number: int) -> TrainedDictionary:
    """The best dictionary of the candidate sizes. Raises ValueError for too few events."""
    candidates = (measure(train(parts.training, number, size), parts) for size in SIZES)
    return min(candidates, key=lambda candidate: candidate.mean)
