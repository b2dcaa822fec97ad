"""The sink that writes to Kafka: an idempotent producer behind a circuit breaker.

An aiokafka producer that met an outage can't be trusted again: batches that expired leave it out of sequence for ever. So
the first send that fails or takes longer than the deadline drops the whole producer, sends are refused at once, and a probe
makes new producers until one starts and every partition has a leader (measurements: docs/decisions/edge-delivery.md).
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError, LeaderNotAvailableError, MessageSizeTooLargeError

from edge.sink import Unavailable
from schemas.chunks import EVENTS_FORMAT, FORMAT_HEADER
from schemas.kafka import calm, client_options, name_of
from schemas.settings import KafkaSettings
from schemas.topics import MAX_RECORD_BYTES, Topic

log = logging.getLogger(__name__)

_CONNECT_SECONDS: Final = 5.0
_FIRST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 1.0
_TOPICS: Final = (Topic.EVENTS, Topic.OUTCOMES)
_HEADERS: Final = {Topic.EVENTS: [(FORMAT_HEADER, EVENTS_FORMAT)]}


class KafkaSink:
    """Sends to Kafka with acks=all; every send ends within `deadline` seconds.

    `ended` hears of a fault that ended the probe: without one nothing is sent any more.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        deadline: float,
        ended: Callable[[BaseException], None] | None = None,
    ) -> None:
        self._settings = settings
        self._deadline = deadline
        self._ended = ended
        self._names = {topic: name_of(settings, topic) for topic in _TOPICS}
        self._producer: AIOKafkaProducer | None = None
        self._requests: set[asyncio.Task[Any]] = set()
        self._waiting: set[asyncio.Timeout] = set()
        self._probe: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self.partitions = 0
        self.drops = 0
        self.tried = False

    @property
    def up(self) -> bool:
        """Whether there is a producer that works as far as is known."""
        return self._producer is not None

    async def start(self) -> None:
        """Begin to connect; `up` says when it has."""
        self._begin()

    async def send(
        self, topic: Topic, value: bytes, partition: int | None = None, key: bytes | None = None
    ) -> None:
        """Return when all in-sync replicas have the record. Raises Unavailable."""
        producer = self._producer
        if producer is None:
            raise Unavailable("Kafka is away")
        timeout = asyncio.timeout(self._deadline)
        try:
            async with timeout:
                self._waiting.add(timeout)
                sending = await producer.send(
                    self._names[topic], value, key=key, partition=partition, headers=_HEADERS.get(topic)
                )
                await sending
        except MessageSizeTooLargeError as error:
            # The record's fault or the topic's setting, not an outage: the producer stays.
            log.warning("the broker refuses a record of %d bytes as too large", len(value))
            raise Unavailable("record too large") from error
        except (TimeoutError, KafkaError, OSError) as error:
            self._drop(producer, error)
            raise Unavailable(type(error).__name__) from error
        finally:
            self._waiting.discard(timeout)

    async def stop(self) -> None:
        """Flush for up to one deadline and close; aiokafka's own stop waits for ever while the broker is away."""
        if self._probe:
            self._probe.cancel()
            await asyncio.wait([self._probe])
        producer, self._producer = self._producer, None
        if producer is not None:
            with suppress(TimeoutError, KafkaError):
                await asyncio.wait_for(producer.flush(), self._deadline)
            await self._abandon(producer)
        if self._closing:
            await asyncio.wait(self._closing)

    def _drop(self, producer: AIOKafkaProducer, error: Exception) -> None:
        if self._producer is not producer:
            return
        log.warning("Kafka does not acknowledge (%s): events go to the spool", type(error).__name__)
        self._producer = None
        self.drops += 1
        now = asyncio.get_running_loop().time()
        for timeout in self._waiting:
            if timeout.when() is not None and not timeout.expired():
                timeout.reschedule(now)
        closing = asyncio.create_task(self._abandon(producer))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        self._begin()

    def _begin(self) -> None:
        self._probe = asyncio.create_task(self._connect())
        self._probe.add_done_callback(self._probed)

    def _probed(self, probe: asyncio.Task[None]) -> None:
        fault = None if probe.cancelled() else probe.exception()
        if fault is None:
            return
        if self._ended is None:
            log.critical("Kafka is not tried again", exc_info=fault)
        else:
            self._ended(fault)

    async def _connect(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while True:
            producer = None
            try:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    # Reads the file of the CA, which may be gone for a moment.
                    producer = self._new_producer()
                    await producer.start()
                    self.partitions = await self._led_partitions(producer)
            except (TimeoutError, KafkaError, OSError) as error:
                log.log(
                    logging.DEBUG if self.tried else logging.WARNING,
                    "Kafka can't be written to: events go to the spool (%s)",
                    str(error) or type(error).__name__,
                )
                self.tried = True
                if producer is not None:
                    await self._abandon(producer)
                await asyncio.sleep(pause)
                pause = min(pause * 1.5, _LONGEST_PAUSE_SECONDS)
            except BaseException:
                if producer is not None:
                    await self._abandon(producer)
                raise
            else:
                if self.drops:
                    log.warning("Kafka acknowledges again")
                self._producer = producer
                self.tried = True
                return

    async def _led_partitions(self, producer: AIOKafkaProducer) -> int:
        """The number of partitions of `events`, once every partition that we write to has a leader."""
        found = {}
        for topic, name in self._names.items():
            found[topic] = await producer.partitions_for(name)
            for partition in found[topic] or ():
                if producer.client.cluster.leader_for_partition(TopicPartition(name, partition)) in {
                    None,
                    -1,
                }:
                    raise LeaderNotAvailableError
        if not found[Topic.EVENTS]:
            raise LeaderNotAvailableError
        return len(found[Topic.EVENTS])

    def _new_producer(self) -> AIOKafkaProducer:
        producer = AIOKafkaProducer(
            **client_options(self._settings),
            acks="all",
            enable_idempotence=True,
            linger_ms=0,
            max_batch_size=1024 * 1024,
            max_request_size=MAX_RECORD_BYTES,
            # Shorter ones let a graceful stop of the broker expire batches, which poisons an idempotent producer.
            request_timeout_ms=30_000,
            metadata_max_age_ms=30_000,
        )
        calm(producer.client)
        send = producer._sender._send_produce_req

        async def tracked(*args: Any) -> Any:
            # What is in flight when the producer is dropped would wait for its request timeout: 30 s, holding its records.
            task = asyncio.current_task()
            assert task is not None
            self._requests.add(task)
            try:
                return await send(*args)
            finally:
                self._requests.discard(task)

        producer._sender._send_produce_req = tracked
        return producer

    async def _abandon(self, producer: AIOKafkaProducer) -> None:
        """Close without waiting for anything unsent; private parts, because the public way waits for ever."""
        requests, self._requests = self._requests, set()
        for task in (producer._sender._sender_task, *requests):
            if task is not None:
                task.cancel()
        producer._closed = True
        with suppress(KafkaError, OSError):
            await producer.client.close()
