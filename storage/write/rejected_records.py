"""Writes rejected records to the dead letters, and their count to the outcomes."""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, Literal

from broker.client import name_of, new_producer
from broker.closing import abandon_producer
from broker.dead_events import DeadEvent, dead_letter_messages
from broker.errors import KafkaError
from broker.types import Producer
from schemas.chunks import ChunkEvent
from schemas.issues import Outcome, encode_json
from schemas.settings import WriterSettings
from schemas.times import MINUTE_MS, iso
from schemas.topics import Topic
from storage.exactly_once.rejections import LOST, EventKey, LostEvents, Origin, PutBack, RejectedRecord
from storage.write.writer_metrics import WriterMetrics

log = logging.getLogger(__name__)

_STAGE: Final = "writer"
_Counted = Literal["accepted", "deadLettered"]


class DeadLetterWriter:
    """Sends dead letters; its producer is created with the first one."""

    def __init__(self, settings: WriterSettings, metrics: WriterMetrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self._producer: Producer | None = None

    async def send(
        self, topic: str, rejected: list[RejectedRecord], put_back: Sequence[PutBack] = ()
    ) -> None:
        """Dead-letter records and events of a topic, and count those put back. Raises KafkaError.

        On return the broker has them. A replay of the block may write dead letters twice; the outcomes count
        once.
        """
        if not rejected and not put_back:
            return
        try:
            producer = await self._started()
            for record in rejected:
                [message] = dead_letter_messages(topic, record.partition, _STAGE, [_dead_event(record)])
                await producer.send_and_wait(
                    name_of(self._settings, Topic.DEAD_LETTERS), value=message.value, headers=message.headers
                )
            for outcome in (*put_back_outcomes(put_back), *dead_letter_outcomes(rejected)):
                await producer.send_and_wait(
                    name_of(self._settings, Topic.OUTCOMES),
                    key=outcome.project_id.encode(),
                    value=encode_json(outcome),
                )
        except KafkaError:
            await self.close()
            raise
        if not rejected:
            return
        self._metrics.dead_letters.labels(topic).inc(len(rejected))
        log.warning(
            "wrote %d records of %s to the dead letters, see `svc dead-letters`: %s",
            len(rejected),
            topic,
            rejected[0].reason,
            extra={"event": "records_dead_lettered"},
        )

    async def close(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            with suppress(KafkaError):
                await producer.stop()

    async def _started(self) -> Producer:
        if self._producer is None:
            producer = new_producer(self._settings)
            try:
                await producer.start()
            except BaseException:
                await abandon_producer(producer)
                raise
            self._producer = producer
        return self._producer


def _dead_event(record: RejectedRecord) -> DeadEvent:
    project = record.event.project if record.event else None
    return DeadEvent(
        record.offset, None, record.value, record.headers, f"{record.kind}: {record.reason}", project
    )


def dead_letter_outcomes(rejected: Iterable[RejectedRecord]) -> Iterator[Outcome]:
    """That events were dead-lettered; always the same for the same records."""
    for record in rejected:
        if record.event is not None:
            yield _outcome(record.event, str(record.partition), record.offset, "deadLettered", record.kind)
        if record.lost is not None:
            yield from _lost(record.lost, "deadLettered", LOST)


def put_back_outcomes(put_back: Iterable[PutBack]) -> Iterator[Outcome]:
    """Outcomes that balance `deadLettered` for events put back.

    They are accepted once more, as for a dead letter of the grouper. The outcome is the same for every copy
    of a dead letter, so it counts once however often it is put back. The dead letter is counted too: its
    writer may have ended before, and another may have stored the event in its place.
    """
    found: dict[str, dict[EventKey, int]] = {}
    for copy in put_back:
        origin, event = Origin.of(copy.origin), copy.event
        if origin.kind == LOST:
            found.setdefault(copy.origin, {})[event.project, event.id] = event.received_ms // MINUTE_MS
            continue
        yield _outcome(event, origin.partition, origin.offset, "accepted", "putBack")
        if origin.kind:
            yield _outcome(event, origin.partition, origin.offset, "deadLettered", origin.kind)
    for text, events in found.items():
        lost = LostEvents(text, Counter((project, minute) for (project, _), minute in events.items()))
        yield from _lost(lost, "accepted", "putBack")
        yield from _lost(lost, "deadLettered", LOST)


def _lost(lost: LostEvents, outcome: _Counted, reason: str) -> Iterator[Outcome]:
    """Outcomes of the events of a lost source; their SDK is unknown."""
    for (project, minute), count in lost.events.items():
        yield Outcome(
            project_id=str(project),
            minute=iso(minute * MINUTE_MS),
            sdk="",
            outcome=outcome,
            reason=reason,
            count=count,
            source=f"{_STAGE}/{lost.origin}",
            sequence=0,
        )


def _outcome(
    event: ChunkEvent,
    partition: str,
    offset: int,
    outcome: _Counted,
    reason: str,
) -> Outcome:
    return Outcome(
        project_id=str(event.project),
        minute=iso(event.received_ms // MINUTE_MS * MINUTE_MS),
        sdk=event.sdk,
        outcome=outcome,
        reason=reason,
        count=1,
        source=f"{_STAGE}/{partition}/{event.id.hex()}",
        sequence=offset,
    )
