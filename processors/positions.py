"""Positions of source records.

A stage derives its progress from its own records, never from offsets that Kafka or Faust committed.
"""

from collections.abc import Sequence
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
    """A record was delivered whose predecessor has not been processed. The worker must stop without acknowledging."""

    def __init__(self, topic: str, partition: int, expected: int, got: int) -> None:
        super().__init__(f"{topic}/{partition}: expected offset {expected}, got {got}")


def new_records(
    topic: str, partition: int, next_offset: int, records: Sequence[SourceRecord]
) -> list[SourceRecord]:
    """The records from `next_offset` on; earlier ones are repeats. Raises OffsetGap where a record is missing.

    Offsets of source topics are contiguous: they have no transactions and are not compacted.
    """
    new: list[SourceRecord] = []
    expected = next_offset
    for record in records:
        if record.offset > expected:
            raise OffsetGap(topic, partition, expected, record.offset)
        if record.offset == expected:
            new.append(record)
            expected += 1
    return new
