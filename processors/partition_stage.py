"""Base of grouper and aggregator: partitions and their next offsets, publishing, the limit of dead letters.

Faust delivers the batches and acknowledges them (`processors.faust_app`).
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Generic, Protocol, TypeVar

from broker.batch_producer import BatchProducer
from broker.dead_events import DeadEvent, dead_letter_messages
from broker.message import Message
from processors.positions import SourceRecord, new_records
from processors.processors_metrics import ProcessorsMetrics
from schemas.topics import Topic

WINDOW: Final = 200
"""Most recent records that the limit looks at."""
LIMIT: Final = 100
"""Dead records among them at which processing stops (`SVC_PROCESSORS_BAD_LIMIT`).

The error is then probably ours, not theirs."""

_NOW: Final = 1 << 62
"""Later than every restored time."""

TopicNames = Mapping[Topic, str]
"""The topics' names on the broker."""
Output = tuple[Topic, int, Iterable[Message]]
"""Topic, partition and records to publish there."""


class HasPosition(Protocol):
    """The state of one partition."""

    partition: int
    next_offset: int


S = TypeVar("S", bound=HasPosition)


class PartitionStage(Generic[S]):
    """A stage with one state a partition.

    `name` names it in metrics and dead letters, `source` its source topic in errors. `partition_count` is
    that of the source, which the other topics have too, except dead letters.
    """

    name: str
    source: str

    def __init__(
        self,
        names: TopicNames,
        partition_count: int,
        producer: BatchProducer,
        metrics: ProcessorsMetrics,
        bad_limit: int,
    ) -> None:
        self._names = names
        self._partition_count = partition_count
        self._producer = producer
        self._metrics = metrics
        self._limit = DeadLetterLimit(limit=bad_limit)
        self._states: dict[int, S] = {}

    @property
    def partitions(self) -> set[int]:
        """The partitions that are restored."""
        return set(self._states)

    def next_offset(self, partition: int) -> int | None:
        """The next offset in the source topic, or None for a partition that is not restored."""
        state = self._states.get(partition)
        return None if state is None else state.next_offset

    def drop(self, partition: int) -> None:
        """Forget a partition that moved to another worker."""
        self._states.pop(partition, None)

    def _new_records(self, state: S, records: Sequence[SourceRecord]) -> list[SourceRecord]:
        """Drop repeats. Raises OffsetGap."""
        return new_records(self.source, state.partition, state.next_offset, records)

    async def _publish(self, outputs: Iterable[Output]) -> None:
        """Write the outputs in order; returns once all in-sync replicas have them.

        Raises KafkaError or PartitionsLost.
        """
        pending = [
            batch
            for topic, partition, messages in outputs
            for batch in await self._producer.begin(self._names[topic], partition, messages)
        ]
        for batch in pending:
            await batch

    def _dead_letters(self, topic: Topic, partition: int, dead: Sequence[DeadEvent]) -> list[Output]:
        """The output to the topic `dead-letters`, which has one partition."""
        messages = dead_letter_messages(self._names[topic], partition, self.name, dead)
        return [(Topic.DEAD_LETTERS, 0, messages)] if dead else []


class TooManyBad(Exception):
    """Most recent records can't be processed. Nothing is acknowledged; the cause must be fixed first."""


class DeadLetterLimit:
    """Counts dead-lettered records among the most recent ones; with the limit 0 it never stops anything."""

    def __init__(self, window: int = WINDOW, limit: int = LIMIT) -> None:
        self._recent: deque[tuple[int, bool]] = deque(maxlen=window)
        self._limit = limit

    def restore(self, records: Iterable[tuple[int, bool]]) -> None:
        """Add records of earlier processes.

        Each has a time that orders the records of several partitions, and whether it was bad.
        """
        self._recent.extend(sorted([*self._recent, *records]))

    def add_batch(self, good: int, bad: int) -> None:
        """Add the records of a batch. Raises TooManyBad."""
        self._recent.extend([(_NOW, False)] * good + [(_NOW, True)] * bad)
        recent_bad = sum(is_bad for _, is_bad in self._recent)
        # A batch without any is no reason to stop, whatever an earlier process or another worker has met.
        if bad and self._limit and recent_bad >= self._limit:
            raise TooManyBad(
                f"{recent_bad} of the last {len(self._recent)} records can't be processed: fix the cause, or set "
                "SVC_PROCESSORS_BAD_LIMIT=0 to dead-letter all of them"
            )
