"""Records that a stage can't process, and their dead letters."""

import time
from collections.abc import Iterable
from typing import NamedTuple

from broker.message import Message
from schemas.dead_letters import DeadLetter
from schemas.times import iso


class DeadEvent(NamedTuple):
    """A record that a stage can't process, or one event of it in a separate chunk."""

    offset: int
    key: bytes | None
    value: bytes
    headers: Iterable[tuple[str, bytes]]
    reason: str
    project: int | None


def dead_letter_messages(
    topic: str, partition: int, stage: str, dead_events: Iterable[DeadEvent]
) -> list[Message]:
    """Records for the topic `dead-letters`.

    They have the original key and bytes, and the origin and the reason in headers.
    """
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
