"""What all processes share on Kafka: how its clients connect, and how a compacted topic is read to its end and followed."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Final

from aiokafka.errors import GroupLoadInProgressError, KafkaError

from broker.diagnosis import security_options, why_unreachable
from broker.types import Admin, Consumer, OffsetAndMetadata, Producer, Record, TopicPartition
from schemas.health import Part
from schemas.projects import ProjectRegistry
from schemas.settings import KafkaSettings
from schemas.topics import MAX_RECORD_BYTES, Topic, topic_name

log = logging.getLogger(__name__)

METADATA_PAUSE_SECONDS: Final = 0.25
_RETRY_SECONDS: Final = (0.1, 0.25, 0.5, 1.0)
_LOADING_PAUSES_SECONDS: Final = (0.1, 0.25, 0.5, 1.0, 2.0)
_EXPLAIN_EVERY: Final = 20
_LOOK_SECONDS: Final = 3.0
"""Between two questions where a followed topic ends: what was read says nothing while nobody writes, or nobody answers."""
_ANSWER_SECONDS: Final = 2.5
SILENT_SECONDS: Final = 8.0
"""Without an answer for so long, no broker answers. A broker that starts again is back sooner."""


def name_of(settings: KafkaSettings, topic: Topic) -> str:
    """A topic's name on the broker, by these settings."""
    return topic_name(topic, settings.topic_prefix, settings.topic_overrides)


def client_options(settings: KafkaSettings) -> dict[str, Any]:
    """Keyword arguments with which every aiokafka client of ours connects."""
    return {
        "bootstrap_servers": settings.kafka_bootstrap.split(","),
        "retry_backoff_ms": 250,
        **security_options(settings),
    }


def new_consumer(settings: KafkaSettings, *topics: str, **options: Any) -> Consumer:
    """A consumer that isn't started and never commits by itself; `options` are aiokafka's."""
    consumer = Consumer(
        *topics,
        **client_options(settings),
        **{
            "enable_auto_commit": False,
            "auto_offset_reset": "earliest",
            "max_partition_fetch_bytes": MAX_RECORD_BYTES,
            **options,
        },
    )
    pause_metadata_retries(consumer._client)
    return consumer


def new_producer(settings: KafkaSettings, **options: Any) -> Producer:
    """A producer that isn't started, with acks from all in-sync replicas; `options` are aiokafka's."""
    producer = Producer(
        **client_options(settings),
        **{
            "acks": "all",
            "enable_idempotence": True,
            "max_request_size": MAX_RECORD_BYTES,
            # Shorter ones let a graceful stop of the broker expire batches, which poisons an idempotent producer.
            "request_timeout_ms": 30_000,
            **options,
        },
    )
    pause_metadata_retries(producer.client)
    return producer


@asynccontextmanager
async def reading(settings: KafkaSettings, *topics: Topic, **options: Any) -> AsyncIterator[Consumer]:
    """A started consumer of these topics' partitions or of none yet, in no group unless `options` name one. Raises KafkaError."""
    consumer = new_consumer(settings, *(name_of(settings, topic) for topic in topics), **options)
    try:
        await consumer.start()
        yield consumer
    finally:
        await _stop(consumer)


async def records_before(consumer: Consumer, ends: Mapping[TopicPartition, int]) -> AsyncIterator[Record]:
    """The records of assigned partitions from where the consumer stands to before the offsets `ends`. Raises KafkaError."""
    left = set(ends)
    # The position, not the last record seen: compaction and markers leave offsets without a record.
    while left := {place for place in left if await consumer.position(place) < ends[place]}:
        for place, records in (await consumer.getmany(*left, timeout_ms=500, max_records=200)).items():
            for record in records:
                if record.offset < ends[place]:
                    yield record


@asynccontextmanager
async def writing(settings: KafkaSettings, **options: Any) -> AsyncIterator[Producer]:
    """A started producer, stopped once all is sent, or abandoned with what isn't where the block fails. Raises KafkaError."""
    producer = new_producer(settings, **options)
    try:
        await producer.start()
        yield producer
    except BaseException:
        # Its own `stop` would wait for the broker with what is not sent. A sender that never ran ends by its cancellation.
        producer._closed = True
        if producer._sender is not None:
            with suppress(asyncio.CancelledError):
                await producer._sender.close()
        await producer.client.close()
        raise
    await producer.stop()


@asynccontextmanager
async def administering(settings: KafkaSettings) -> AsyncIterator[Admin]:
    """A started admin client, closed afterwards, also where it doesn't get in. Raises KafkaError."""
    admin = Admin(**client_options(settings))
    pause_metadata_retries(admin._client)
    try:
        await admin.start()
        yield admin
    finally:
        await admin.close()


async def committed_offsets(
    admin: Admin, group: str, places: Iterable[TopicPartition]
) -> dict[TopicPartition, OffsetAndMetadata]:
    """What a group has committed of each of `places`, -1 where it has nothing. Raises KafkaError.

    A coordinator that is still loading, after a broker's death, answers with an error that aiokafka 0.14 passes over, and without any
    partition; taken for "nothing committed", everything would be read again. A broker that knows names each partition.
    """
    asked = list(places)
    for pause in (*_LOADING_PAUSES_SECONDS, None):
        found: dict[TopicPartition, OffsetAndMetadata] = await admin.list_consumer_group_offsets(
            group, partitions=asked
        )
        if found.keys() >= set(asked):
            return found
        if pause is not None:
            await asyncio.sleep(pause)
    raise GroupLoadInProgressError(f"the coordinator of {group} doesn't tell its offsets yet")


def pause_metadata_retries(client: Any) -> None:
    """Let an AIOKafkaClient pause after a failed metadata request.

    aiokafka 0.14 asks again at once while no broker answers: a whole core and 10,000 log lines a second. A test notices when
    that is mended there.
    """
    update = client._metadata_update

    async def paused(*args: Any, **kwargs: Any) -> bool:
        succeeded: bool = await update(*args, **kwargs)
        if not succeeded:
            await asyncio.sleep(METADATA_PAUSE_SECONDS)
        return succeeded

    client._metadata_update = paused


class TopicFollower:
    """Reads a compacted topic from its beginning, then follows it; `apply` gets each record's key and value.

    `loaded` is set once what stood in the topic at the start has been applied. A broker that is away is waited for. A record
    that `apply` refuses with ValueError (msgspec's errors are) is logged and passed over: one bad record must not keep all
    processes from starting.
    """

    def __init__(
        self, settings: KafkaSettings, topic: Topic, apply: Callable[[bytes, bytes | None], None]
    ) -> None:
        self._settings = settings
        self._topic = name_of(settings, topic)
        self._apply = apply
        self._applied: dict[TopicPartition, int] = {}
        self._changed = asyncio.Condition()
        self._current_at: float | None = None
        self.loaded = asyncio.Event()

    def answering(self) -> Part:
        """Whether a broker has answered lately: for readiness."""
        if self._current_at is None:
            return Part(ok=False, detail="connecting")
        silent = self.age > SILENT_SECONDS
        return Part(not silent, f"no broker has answered for {self.age:.0f} s" if silent else "")

    @property
    def age(self) -> float:
        """Seconds since everything in the topic was known to have been applied; infinite before the first time."""
        return float("inf") if self._current_at is None else time.monotonic() - self._current_at

    async def run(self) -> None:
        """Follow until cancelled."""
        attempt = 0
        while True:
            try:
                async with AsyncExitStack() as stack:
                    consumer = new_consumer(self._settings, fetch_max_wait_ms=500)
                    stack.push_async_callback(_stop, consumer)
                    await consumer.start()
                    attempt = 0
                    await self._follow(consumer)
            except (KafkaError, OSError) as error:
                # Looked into now and then only: it takes seconds where nobody answers.
                looked = attempt % _EXPLAIN_EVERY == 0
                reason = await asyncio.to_thread(why_unreachable, self._settings) if looked else None
                log.warning("can't follow %s: %s", self._topic, reason or error)
                await asyncio.sleep(_RETRY_SECONDS[min(attempt, len(_RETRY_SECONDS) - 1)])
                attempt += 1

    async def _follow(self, consumer: Consumer) -> None:
        partitions = [TopicPartition(self._topic, p) for p in await self._partitions(consumer)]
        consumer.assign(partitions)
        for partition in partitions:
            consumer.seek(partition, self._applied.get(partition, 0))
        while True:
            if self.age > _LOOK_SECONDS:
                await self._look(consumer, partitions)
            for partition, records in (await consumer.getmany(timeout_ms=500)).items():
                for record in records:
                    self._apply_one(record.key, record.value)
                self._applied[partition] = records[-1].offset + 1
            async with self._changed:
                self._changed.notify_all()

    async def _partitions(self, consumer: Consumer) -> list[int]:
        while True:
            # The first question names the topic; asked again, only a forced update looks anew.
            await consumer._client.add_topic(self._topic)
            await consumer._client.force_metadata_update()
            found = consumer.partitions_for_topic(self._topic)
            if found:
                return sorted(found)
            log.warning("topic %s is missing: run `svc migrate`", self._topic)
            await asyncio.sleep(1.0)

    async def _look(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Ask where the topic ends: only an answer tells that no news are no news."""
        asked = time.monotonic()
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                ends = await consumer.end_offsets(partitions)
                # The position, not the last record seen: compaction and markers leave offsets without a record.
                positions = [await consumer.position(p) >= end for p, end in ends.items()]
        except TimeoutError:
            return
        if all(positions):
            self._current_at = asked
            self.loaded.set()

    def _apply_one(self, key: bytes | None, value: bytes | None) -> None:
        try:
            self._apply(key or b"", value)
        except ValueError as error:
            log.warning("bad record %r in %s: %s", key, self._topic, error)

    async def reached(self, partition: int, offset: int) -> None:
        """Return once the record at `offset`, just written by the caller, has been applied."""
        place = TopicPartition(self._topic, partition)
        async with self._changed:
            await self._changed.wait_for(lambda: self._applied.get(place, 0) > offset)


async def _stop(consumer: Consumer) -> None:
    with suppress(KafkaError, OSError):
        await consumer.stop()


def follow_projects(settings: KafkaSettings, registry: ProjectRegistry) -> TopicFollower:
    """A follower that keeps the registry current; its owner runs `run()` and waits for `loaded`."""
    return TopicFollower(settings, Topic.PROJECTS, registry.apply)
