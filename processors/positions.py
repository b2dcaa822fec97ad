"""Positions: what has been done is known from our own records, never from what a framework delivers or commits."""

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple


class SourceRecord(NamedTuple):
    """A record of a source topic as it was delivered."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes
    headers: list[tuple[str, bytes]]


class LogRecreated(Exception):
    """A source record is not the one that was processed: its topic was recreated."""


class OffsetGap(Exception):
    """A record came whose predecessor has not been processed. The worker must stop without acknowledging."""

    def __init__(self, what: str, partition: int, expected: int, got: int) -> None:
        super().__init__(f"{what}/{partition}: expected offset {expected}, got {got}")
        self.partition = partition


class Step(Enum):
    """What a delivered offset is."""

    NEXT = "next"
    REPEAT = "repeat"
    GAP = "gap"


def step(next_offset: int, offset: int) -> Step:
    """Judge an offset by the one that is due. Offsets of our source topics are contiguous: no transactions, no compaction."""
    if offset == next_offset:
        return Step.NEXT
    return Step.REPEAT if offset < next_offset else Step.GAP


def new_records(
    topic: str, partition: int, next_offset: int, sources: Sequence[SourceRecord]
) -> list[SourceRecord]:
    """The records that were not handled before. Raises OffsetGap where one is missing."""
    fresh: list[SourceRecord] = []
    for source in sources:
        judged = step(next_offset + len(fresh), source.offset)
        if judged is Step.GAP:
            raise OffsetGap(topic, partition, next_offset + len(fresh), source.offset)
        if judged is Step.NEXT:
            fresh.append(source)
    return fresh


class OffsetRange(NamedTuple):
    """Offsets `first` to `last`, both included."""

    first: int
    last: int


def first_hole(spans: Iterable[OffsetRange], start: int) -> int:
    """The first offset from `start` on that no span covers. Spans may overlap."""
    new_records = start
    for first, last in sorted(spans):
        if first > new_records:
            break
        new_records = max(new_records, last + 1)
    return new_records
