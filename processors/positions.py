"""Positions: what has been done is known from our own records, never from what a framework delivers or commits."""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple


class Gap(Exception):
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


class Span(NamedTuple):
    """Offsets `first` to `last`, both included."""

    first: int
    last: int


def first_hole(spans: Iterable[Span], start: int) -> int:
    """The first offset from `start` on that no span covers. Spans may overlap."""
    due = start
    for first, last in sorted(spans):
        if first > due:
            break
        due = max(due, last + 1)
    return due
