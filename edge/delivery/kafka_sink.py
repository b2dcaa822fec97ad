"""The sink that writes to Kafka: an idempotent producer behind a circuit breaker.

An aiokafka producer can't be reused after an outage: expired or refused batches leave it out of sequence
permanently. So the first send that fails or exceeds the deadline drops the producer. Sends then fail
immediately until a probe has created a producer that starts and every partition has a leader (measurements:
docs/decisions/edge.md).
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from broker.client import name_of
from broker.errors import KafkaError, RecordTooLarge, SinkUnavailable
from broker.kafka_diagnosis import Unreachable, why_unreachable
from broker.producer import RecordProducer
from broker.send_errors import SendErrorKind, kind_of
from schemas.chunks import EVENTS_FORMAT, FORMAT_HEADER
from schemas.settings import KafkaSettings
from schemas.topics import MAX_RECORD_BYTES, Topic

log = logging.getLogger(__name__)

_CONNECT_SECONDS: Final = 5.0
_FIRST_PAUSE_SECONDS: Final = 0.1
_MAX_PAUSE_SECONDS: Final = 1.0
_MAX_BACKOFF_SECONDS: Final = 5.0
"""Longest wait for a new producer after producers that started but got no acknowledgement, for example
without the right to write."""
_EXPLAIN_EVERY: Final = 20
_LIMIT_SECONDS: Final = 300.0
"""How long a refused record size is remembered: each retry costs the producer, but the limit may be raised."""
_CLIENT_LIMIT: Final = MAX_RECORD_BYTES - 1024
"""The client's own size limit, minus the overhead of a batch."""
_TOPICS: Final = (Topic.EVENTS, Topic.OUTCOMES)
_HEADERS: Final = {Topic.EVENTS: [(FORMAT_HEADER, EVENTS_FORMAT)]}


class Failure(Struct, frozen=True):
    """Why nothing is acknowledged: the last error, and since when (Unix seconds)."""

    error: str
    detail: str
    kind: SendErrorKind
    since: float


class KafkaSink:
    """Sends to Kafka with acks=all; every send ends within `deadline` seconds.

    `probe_failed` is called with an error that ended the probe: nothing is sent without a probe.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        deadline: float,
        probe_failed: Callable[[BaseException], None] | None = None,
        new_producer: Callable[[KafkaSettings], RecordProducer] = RecordProducer,
        now: Callable[[], float] | None = None,
        explain: Callable[[KafkaSettings], Unreachable | None] = why_unreachable,
    ) -> None:
        self._settings = settings
        self._deadline = deadline
        self._probe_failed = probe_failed
        self._new_producer = new_producer
        self._now = now or time.time
        self._why_unreachable = explain
        self._names = {topic: name_of(settings, topic) for topic in _TOPICS}
        self._producer: RecordProducer | None = None
        self._waiting: set[asyncio.Timeout] = set()
        self._probe: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._refused: dict[Topic, tuple[int, float]] = {}
        self._unacknowledged = 0
        self._acknowledged_at = self._now()
        self.connected = asyncio.Event()
        self.failures: dict[Topic, Failure] = {}
        self.errors: Counter[str] = Counter()
        self.partitions = 0
        self.attempted = False
        self.has_delivered = False

    @property
    def up(self) -> bool:
        """Whether there is a producer that is not known to fail."""
        return self._producer is not None

    @property
    def silent_seconds(self) -> float:
        """Seconds since events were last acknowledged, or since the start."""
        return max(0.0, self._now() - self._acknowledged_at)

    async def start(self) -> None:
        """Start to connect; then `up` is true."""
        self._start_probe()

    async def send(
        self, topic: Topic, value: bytes, partition: int | None = None, key: bytes | None = None
    ) -> None:
        """Return when all in-sync replicas have the record. Raises SinkUnavailable or RecordTooLarge, nothing else."""
        producer = self._producer
        if producer is None:
            raise SinkUnavailable("Kafka is unavailable")
        if len(value) >= self._refused_bytes(topic):
            raise RecordTooLarge(f"{len(value)} bytes exceed the known limit")
        try:
            await self._send(producer, topic, value, partition, key)
        except Exception as error:  # whatever the Kafka client raises, an accepted event goes to the spool
            if kind_of(error) is SendErrorKind.TOO_LARGE:
                self._learn_limit(producer, topic, len(value))
                raise RecordTooLarge(str(error)) from error
            self._failed(producer, topic, error)
            raise SinkUnavailable(type(error).__name__) from error
        self._succeeded(topic)

    async def stop(self) -> None:
        """Flush within the deadline and close."""
        if self._probe:
            self._probe.cancel()
            await asyncio.wait([self._probe])
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.flush(self._deadline)
            await producer.abandon()
        if self._closing:
            await asyncio.wait(self._closing)

    async def _send(
        self, producer: RecordProducer, topic: Topic, value: bytes, partition: int | None, key: bytes | None
    ) -> None:
        timeout = asyncio.timeout(self._deadline)
        try:
            async with timeout:
                self._waiting.add(timeout)
                name, headers = self._names[topic], _HEADERS.get(topic)
                await (await producer.enqueue(name, value, key, partition, headers))
        finally:
            # Before the error is handled: an expired timeout can't be rescheduled.
            self._waiting.discard(timeout)

    def _succeeded(self, topic: Topic) -> None:
        self._recovered(topic)
        if topic is Topic.EVENTS:
            self._acknowledged_at = self._now()
            self._unacknowledged = 0
            self.has_delivered = True

    def _recovered(self, topic: Topic) -> None:
        failure = self.failures.pop(topic, None)
        if failure is not None:
            seconds = self._now() - failure.since
            log.warning(
                "Kafka accepts %s again after %.1f s",
                topic.title,
                seconds,
                extra={"event": "kafka_write_recovered"},
            )

    def _failed(self, producer: RecordProducer, topic: Topic, error: Exception) -> None:
        if self._producer is not producer:
            # Sent before the producer was dropped: only the first error counts.
            return
        self._record_failure(topic, error)
        if topic is not Topic.EVENTS and kind_of(error) is SendErrorKind.DENIED:
            # A missing right for another topic must not stop events.
            return
        self._unacknowledged += 1
        self._drop(producer)

    def _record_failure(self, topic: Topic, error: Exception) -> None:
        name, kind = type(error).__name__, kind_of(error)
        detail = _describe(error)
        before = self.failures.get(topic)
        self.errors[name] += 1
        if before is not None and before.error == name:
            # Keep the explanation that was found for it.
            return
        self.failures[topic] = Failure(name, detail, kind, before.since if before else self._now())
        level = logging.ERROR if kind is SendErrorKind.DENIED else logging.WARNING
        log.log(
            level,
            "can't write %s to Kafka, spooling accepted events (%s)",
            topic.title,
            detail,
            extra={"event": "kafka_write_failed"},
        )

    def _learn_limit(self, producer: RecordProducer, topic: Topic, size: int) -> None:
        if size < self._refused_bytes(topic):
            log.warning(
                "Kafka refuses a record of %d bytes for %s as too large",
                size,
                topic.title,
                extra={"event": "record_too_large"},
            )
            self._refused[topic] = size, self._now()
        if self._producer is producer:
            # The refused batch has consumed a sequence number: the next one would be out of sequence.
            self._drop(producer)

    def _refused_bytes(self, topic: Topic) -> int:
        """The smallest size that is known to be too large."""
        size, refused_at = self._refused.get(topic, (_CLIENT_LIMIT, 0.0))
        return size if 0 <= self._now() - refused_at < _LIMIT_SECONDS else _CLIENT_LIMIT

    def _drop(self, producer: RecordProducer) -> None:
        self._producer = None
        self.connected.clear()
        now = asyncio.get_running_loop().time()
        for timeout in self._waiting:
            if timeout.when() is not None and not timeout.expired():
                timeout.reschedule(now)
        closing = asyncio.create_task(producer.abandon())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        self._start_probe()

    def _start_probe(self) -> None:
        self._probe = asyncio.create_task(self._connect(self._unacknowledged))
        self._probe.add_done_callback(self._probed)

    def _probed(self, probe: asyncio.Task[None]) -> None:
        error = None if probe.cancelled() else probe.exception()
        if error is None:
            return
        if self._probe_failed is None:
            log.critical(
                "reconnecting to Kafka has stopped", exc_info=error, extra={"event": "reconnect_stopped"}
            )
        else:
            self._probe_failed(error)

    async def _connect(self, unacknowledged: int) -> None:
        await asyncio.sleep(backoff_seconds(unacknowledged))
        pause = _FIRST_PAUSE_SECONDS
        explaining = None
        try:
            for attempt in count():
                if await self._connect_once():
                    return
                if attempt % _EXPLAIN_EVERY == 0 and (explaining is None or explaining.done()):
                    explaining = asyncio.create_task(self._explain())
                await asyncio.sleep(pause)
                pause = min(pause * 1.5, _MAX_PAUSE_SECONDS)
        finally:
            if explaining is not None:
                explaining.cancel()

    async def _explain(self) -> None:
        """Diagnose the connection while the probe continues: its errors don't tell TLS from credentials."""
        reason = await asyncio.to_thread(self._why_unreachable, self._settings)
        failure = self.failures.get(Topic.EVENTS)
        if reason is None or failure is None:
            return
        kind = SendErrorKind.DENIED if reason.denied else failure.kind
        self.failures[Topic.EVENTS] = replace(failure, detail=f"{failure.error}: {reason}", kind=kind)

    async def _connect_once(self) -> bool:
        producer = None
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                # Reads the CA file, which may be missing for a moment.
                producer = self._new_producer(self._settings)
                await producer.start()
                self.partitions = await producer.led_partitions(self._names)
        except BaseException as error:
            if producer is not None:
                await producer.abandon()
            if not isinstance(error, (TimeoutError, KafkaError, OSError)):
                raise
            self._record_failure(Topic.EVENTS, error)
            self.attempted = True
            return False
        self._producer = producer
        self.connected.set()
        self.attempted = True
        if not self._unacknowledged:
            # No send has failed since the last acknowledgement, so no acknowledgement needs to be awaited.
            self._recovered(Topic.EVENTS)
        return True


def backoff_seconds(unacknowledged: int) -> float:
    """Seconds before the next producer, after consecutive ones that started but got no acknowledgement."""
    if unacknowledged < 2:
        return 0.0
    return min(_FIRST_PAUSE_SECONDS * 2.0 ** min(unacknowledged, 30), _MAX_BACKOFF_SECONDS)


def _describe(error: Exception) -> str:
    """An error's class and message."""
    name, text = type(error).__name__, str(error)
    if isinstance(error, TimeoutError):
        return f"{name}: no response in time"
    return text if name in text else f"{name}: {text}" if text else name
