"""Setting records aside, and knowing when too many are bad for that to be right."""

import time
from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple

from broker.message import Message
from schemas.dead_letters import DeadLetter
from schemas.times import iso

WINDOW: Final = 200
"""Most recent records that are looked at."""
LIMIT: Final = 100
"""Bad ones among them at which processing stops (`SVC_PROCESSORS_BAD_LIMIT`): more likely the fault is ours than theirs."""
PARTITION: Final = 0
"""Dead letters have one partition: few should ever come, and they are read by people."""

_NOW: Final = 1 << 62
"""Later than all that is recalled."""


class DeadEvent(NamedTuple):
    """A record, or one event of it as a chunk of its own, that is to be set aside."""

    offset: int
    key: bytes | None
    value: bytes
    headers: list[tuple[str, bytes]]
    reason: str
    project: int | None


class TooManyBad(Exception):
    """Most recent records can't be processed. Nothing is acknowledged; the cause must be mended first."""


class DeadLetterLimit:
    """Counts bad records among the most recent ones; with the limit 0 it never stops anything."""

    def __init__(self, window: int = WINDOW, limit: int = LIMIT) -> None:
        self._recent: deque[tuple[int, bool]] = deque(maxlen=window)
        self._limit = limit

    def recall(self, records: Iterable[tuple[int, bool]]) -> None:
        """Records of earlier processes: a time by which those of several partitions can be ordered, and whether they were bad."""
        self._recent.extend(sorted([*self._recent, *records]))

    def note(self, good: int, bad: int) -> None:
        """Records of a take. Raises TooManyBad."""
        self._recent.extend([(_NOW, False)] * good + [(_NOW, True)] * bad)
        found = sum(is_bad for _, is_bad in self._recent)
        # A take without any is no reason to stop, whatever an earlier process or another worker has met.
        if bad and self._limit and found >= self._limit:
            raise TooManyBad(
                f"{found} of the last {len(self._recent)} records can't be processed: mend the cause, or set "
                "SVC_PROCESSORS_BAD_LIMIT=0 to set all of them aside"
            )


def dead_letter_messages(topic: str, partition: int, stage: str, bad: Iterable[DeadEvent]) -> list[Message]:
    """Records for the topic `dead-letters`: original key and bytes, the origin and the reason in headers."""
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
        for event in bad
    ]
