"""What grouper, aggregator and writer have in common: each is a deterministic function of its input log that survives any crash.

The three stages (`processors/grouper/stage.py`, `processors/aggregator/stage.py`, `storage/writer/stage.py`) use these words:

- **batch**: records of some partitions that are handled together, from one position to the next.
- **position**: partition and offset of a source record. Every output carries the position of its source, so that the next stage
  can drop repeats.
- **next offset**: the offset of a partition that the stage handles next. Later records are not handled before it.
- **restore**: find the next offset of a partition, and the state at it, from what the stage itself has recorded.
- **decide**: compute the outputs of a batch from the state and the records alone; pure functions, no I/O and no clock.
- **outputs**: all that a batch writes. *Record* the decisions or the plan, *publish* what follows from them, *commit* the position.
  Each of these is safe before the next begins.
- **replay**: after a crash, write the outputs of the last batch once more as they were decided. Consumers drop the repeats by position.
- **replay boundary**: the first position from which a replay may still be needed.
"""

import time
from collections.abc import Iterable
from typing import NamedTuple

from broker.message import Message
from schemas.dead_letters import DeadLetter
from schemas.times import iso


class DeadEvent(NamedTuple):
    """A record that a stage can't process, or one event of it as a chunk of its own."""

    offset: int
    key: bytes | None
    value: bytes
    headers: Iterable[tuple[str, bytes]]
    reason: str
    project: int | None


def dead_letter_messages(
    topic: str, partition: int, stage: str, dead_events: Iterable[DeadEvent]
) -> list[Message]:
    """Records for the topic `dead-letters`: original key and bytes, with the origin and the reason in headers."""
    at = iso(time.time_ns() // 1_000_000)
    return [
        Message(
            event.key,
            event.value,
            DeadLetter(
                topic=topic,
                partition=partition,
                offset=event.offset,
                stage=stage,
                reason=event.reason,
                at=at,
                project_id="" if event.project is None else str(event.project),
            ).headers(event.headers),
        )
        for event in dead_events
    ]
