"""Sets aside what can't be written: the bytes to the dead letters, the count to the outcomes."""

import logging
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from broker.client import name_of, new_producer
from broker.errors import KafkaError
from broker.types import Producer
from schemas.dead_letters import DeadLetter
from schemas.issues import Outcome, encode_json
from schemas.settings import WriterSettings
from schemas.times import iso
from schemas.topics import Topic
from storage.writer.blocks import PutBack, RejectedRecord
from storage.writer.metrics import WriterMetrics

log = logging.getLogger(__name__)

_STAGE: Final = "writer"
_MINUTE_MS: Final = 60_000


class DeadLetterWriter:
    """Sends dead letters; its producer is made when the first one is."""

    def __init__(self, settings: WriterSettings, metrics: WriterMetrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self._producer: Producer | None = None

    async def send(self, topic: str, refused: list[RejectedRecord], put_back: Sequence[PutBack] = ()) -> None:
        """Set aside records and events of a topic, and count those that came back; returns once the broker has them. Raises KafkaError.

        Sent again with the same block, they may be there twice; the outcomes are counted once.
        """
        if not refused and not put_back:
            return
        try:
            producer = await self._started()
            for one in refused:
                await producer.send_and_wait(
                    name_of(self._settings, Topic.DEAD_LETTERS),
                    value=one.value,
                    headers=self._letter(topic, one).headers(one.headers),
                )
            for outcome in (*returned(put_back), *outcomes(refused)):
                await producer.send_and_wait(
                    name_of(self._settings, Topic.OUTCOMES),
                    key=outcome.project_id.encode(),
                    value=encode_json(outcome),
                )
        except KafkaError:
            await self.close()
            raise
        if not refused:
            return
        self._metrics.dead_letters.labels(topic).inc(len(refused))
        log.warning("%d of %s went to the dead letters: %s", len(refused), topic, refused[0].reason)

    async def close(self) -> None:
        """Let go of the broker."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with suppress(KafkaError):
                await producer.stop()

    async def _started(self) -> Producer:
        if self._producer is None:
            producer = new_producer(self._settings)
            await producer.start()
            self._producer = producer
        return self._producer

    def _letter(self, topic: str, one: RejectedRecord) -> DeadLetter:
        return DeadLetter(
            topic=topic,
            partition=one.partition,
            offset=one.offset,
            stage=_STAGE,
            reason=f"{one.kind}: {one.reason}",
            at=iso(time.time_ns() // 1_000_000),
            project_id=str(one.event.project) if one.event else "",
        )


def outcomes(refused: list[RejectedRecord]) -> list[Outcome]:
    """How many events of each record ended in the dead letters. The same for the same records, whenever it is asked."""
    counts = Counter(
        (
            one.partition,
            one.offset,
            one.event.project,
            one.event.received_ms // _MINUTE_MS,
            one.event.sdk,
            one.kind,
        )
        for one in refused
        if one.event is not None
    )
    return [
        Outcome(
            project_id=str(project),
            minute=iso(minute * _MINUTE_MS),
            sdk=sdk,
            outcome="deadLettered",
            reason=kind,
            count=count,
            source=f"{_STAGE}/{partition}",
            sequence=offset,
        )
        for (partition, offset, project, minute, sdk, kind), count in counts.items()
    ]


def returned(put_back: Iterable[PutBack]) -> Iterator[Outcome]:
    """What makes up for `deadLettered` when a letter comes back: it is accepted once more, as one that the grouper set aside is.

    The same for every copy of a letter, so that it counts once however often it was put back.
    """
    for one in put_back:
        event = one.event
        partition, _, offset = one.origin.partition("/")
        yield Outcome(
            project_id=str(event.project),
            minute=iso(event.received_ms // _MINUTE_MS * _MINUTE_MS),
            sdk=event.sdk,
            outcome="accepted",
            reason="putBack",
            count=1,
            source=f"{_STAGE}/{partition}/{event.id.hex()}",
            sequence=int(offset) if offset.isdecimal() else 0,
        )
