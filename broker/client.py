"""Kafka clients with the options that all processes share, and a follower of compacted topics."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Final

from aiokafka.errors import GroupLoadInProgressError, KafkaError, NoError, TopicAuthorizationFailedError

from broker.closing import abandon_producer, close_interrupted_start, stay_closed, stop_consumer
from broker.kafka_diagnosis import security_options, why_unreachable
from broker.send_errors import SendErrorKind, kind_of
from broker.types import Admin, Consumer, OffsetAndMetadata, Producer, Record, TopicPartition
from schemas.health import Part
from schemas.projects import ProjectRegistry
from schemas.settings import KafkaSettings
from schemas.topics import MAX_RECORD_BYTES, Topic, topic_name

log = logging.getLogger(__name__)

METADATA_PAUSE_SECONDS: Final = 0.25
METADATA_AGE_MS: Final = 30_000
"""So long, at most, a client doesn't see that a topic can be read again, or has more partitions."""
PRODUCER_TIMEOUT_SECONDS: Final = 30.0
"""How long a producer waits for an answer, and so how long a request of a killed one may still arrive.

With a shorter time a graceful broker stop expires batches, which breaks an idempotent producer.
"""
_RETRY_SECONDS: Final = (0.1, 0.25, 0.5, 1.0)
LOADING_PAUSES_SECONDS: Final = (0.1, 0.25, 0.5, 1.0, 2.0)
_EXPLAIN_EVERY: Final = 20
_END_OFFSETS_SECONDS: Final = 3.0
"""Interval of requests for the end of a followed topic: without them, an idle topic looks like an unavailable
broker."""
_ANSWER_SECONDS: Final = 2.5
SILENT_SECONDS: Final = 8.0
"""Without a response for this long, brokers count as unavailable. A restarting broker is back sooner."""


def name_of(settings: KafkaSettings, topic: Topic) -> str:
    """A topic's name on the broker."""
    return topic_name(topic, settings.topic_prefix, settings.topic_overrides)


def topic_names(settings: KafkaSettings) -> dict[Topic, str]:
    """All topics' names on the broker."""
    return {topic: name_of(settings, topic) for topic in Topic}


def client_options(settings: KafkaSettings) -> dict[str, Any]:
    """Keyword arguments for every aiokafka client."""
    return {
        "bootstrap_servers": settings.kafka_bootstrap.split(","),
        "client_id": settings.kafka_client_id,
        "retry_backoff_ms": 250,
        "metadata_max_age_ms": METADATA_AGE_MS,
        **security_options(settings),
    }


def new_consumer(settings: KafkaSettings, *topics: str, **options: Any) -> Consumer:
    """A consumer without auto-commit, not started; `options` are aiokafka's."""
    consumer = Consumer(
        *topics,
        **client_options(settings),
        **{
            "enable_auto_commit": False,
            "auto_offset_reset": "earliest",
            "max_partition_fetch_bytes": MAX_RECORD_BYTES,
            "session_timeout_ms": int(settings.kafka_session_seconds * 1000),
            "heartbeat_interval_ms": int(settings.kafka_heartbeat_seconds * 1000),
            **options,
        },
    )
    patch_client(consumer._client)
    return consumer


def new_producer(settings: KafkaSettings, **options: Any) -> Producer:
    """An idempotent producer with acks=all, not started; `options` are aiokafka's."""
    producer = Producer(
        **client_options(settings),
        **{
            "acks": "all",
            "enable_idempotence": True,
            "max_request_size": MAX_RECORD_BYTES,
            "request_timeout_ms": int(PRODUCER_TIMEOUT_SECONDS * 1000),
            **options,
        },
    )
    patch_client(producer.client)
    return producer


@asynccontextmanager
async def open_consumer(settings: KafkaSettings, *topics: Topic, **options: Any) -> AsyncIterator[Consumer]:
    """A started consumer of `topics`, if any. Raises KafkaError.

    It has no group unless `options` name one.
    """
    consumer = new_consumer(settings, *(name_of(settings, topic) for topic in topics), **options)
    try:
        await consumer.start()
        yield consumer
    finally:
        await _stop(consumer)


async def records_before(consumer: Consumer, ends: Mapping[TopicPartition, int]) -> AsyncIterator[Record]:
    """The records of assigned partitions up to the offsets `ends`, exclusive.

    They begin at the consumer's position. Raises KafkaError.
    """
    unread = set(ends)
    # The position, not the last record: compaction and markers leave offsets without a record.
    while unread := {tp for tp in unread if await consumer.position(tp) < ends[tp]}:
        for tp, records in (await consumer.getmany(*unread, timeout_ms=500, max_records=200)).items():
            for record in records:
                if record.offset < ends[tp]:
                    yield record


@asynccontextmanager
async def open_producer(settings: KafkaSettings, **options: Any) -> AsyncIterator[Producer]:
    """A started producer. Raises KafkaError.

    It is flushed and stopped at the end, and closed without a flush if the block fails.
    """
    producer = new_producer(settings, **options)
    try:
        await producer.start()
        yield producer
        await producer.stop()
    except BaseException:
        await abandon_producer(producer)
        raise


@asynccontextmanager
async def open_admin(settings: KafkaSettings) -> AsyncIterator[Admin]:
    """A started admin client, always closed at the end. Raises KafkaError."""
    admin = Admin(**client_options(settings))
    patch_client(admin._client)
    try:
        await admin.start()
        yield admin
    finally:
        await admin.close()


async def committed_offsets(
    admin: Admin, group: str, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, OffsetAndMetadata]:
    """The committed offset of a group for each partition, -1 without a commit. Raises KafkaError.

    While the coordinator loads after a broker failure, its response has no partitions, and an error that
    aiokafka 0.14 ignores. If that counted as "nothing committed", everything would be read again. A complete
    response has every partition.
    """
    requested = list(partitions)
    for pause in (*LOADING_PAUSES_SECONDS, None):
        try:
            offsets: dict[TopicPartition, OffsetAndMetadata] = await admin.list_consumer_group_offsets(
                group, partitions=requested
            )
        except NoError as error:
            # aiokafka 0.14 raises the response's error, not the partition's. Mostly a right is missing.
            raise TopicAuthorizationFailedError(str(error)) from None
        if offsets.keys() >= set(requested):
            return offsets
        if pause is not None:
            await asyncio.sleep(pause)
    raise GroupLoadInProgressError(f"the coordinator of {group} is still loading its offsets")


def patch_client(client: Any) -> None:
    """Patch an AIOKafkaClient, as every one of ours."""
    pause_metadata_retries(client)
    close_interrupted_start(client)
    stay_closed(client)


def pause_metadata_retries(client: Any) -> None:
    """Make an AIOKafkaClient pause after a metadata request that failed, or that finds a partition without a leader.

    While no broker responds, aiokafka 0.14 retries immediately: a whole core and 10,000 log lines a second. A
    test detects when that is fixed upstream. A consumer asks again immediately while one of its partitions, also a
    paused one, has no leader: 450 requests a second.
    """
    update = client._metadata_update

    async def paused(cluster: Any, *args: Any, **kwargs: Any) -> bool:
        succeeded: bool = await update(cluster, *args, **kwargs)
        if not succeeded or any(
            one.leader == -1 for known in cluster._partitions.values() for one in known.values()
        ):
            await asyncio.sleep(METADATA_PAUSE_SECONDS)
        return succeeded

    client._metadata_update = paused


class TopicFollower:
    """Reads a compacted topic from its beginning, then follows it; `apply` gets each record's key and value.

    With `tail` it begins at the topic's end.
    `loaded` is set once everything in the topic at the start has been applied. The follower waits for an
    unavailable broker. It logs and skips a record that `apply` refuses with ValueError (msgspec's errors are
    ValueErrors): one bad record must not keep all processes from starting.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        topic: Topic,
        apply: Callable[[bytes, bytes | None], None],
        *,
        tail: bool = False,
    ) -> None:
        self._settings = settings
        self._topic = name_of(settings, topic)
        self._apply = apply
        self._tail = tail
        self._applied: dict[TopicPartition, int] = {}
        self._changed = asyncio.Condition()
        self._current_at: float | None = None
        self._refused = False
        self.loaded = asyncio.Event()

    def answering(self) -> Part:
        """Whether a broker has responded recently: for readiness.

        Records that were read stay valid without the right to read more.
        """
        if self._refused:
            return Part(self.loaded.is_set(), self._refusal)
        if self._current_at is None:
            return Part(ok=False, detail="connecting")
        silent = self.age > SILENT_SECONDS
        return Part(not silent, f"no broker has answered for {self.age:.0f} s" if silent else "")

    @property
    def _refusal(self) -> str:
        return f"Kafka refuses Read on topic {self._topic}"

    @property
    def age(self) -> float:
        """Seconds since the whole topic was last known to be applied; infinite before the first time."""
        return float("inf") if self._current_at is None else time.monotonic() - self._current_at

    async def run(self) -> None:
        """Follow until cancelled."""
        attempt = 0
        while True:
            try:
                async with AsyncExitStack() as stack:
                    consumer = new_consumer(self._settings, fetch_max_wait_ms=1000)
                    stack.push_async_callback(_stop, consumer)
                    await consumer.start()
                    attempt = 0
                    await self._follow(consumer)
            except (KafkaError, OSError) as error:
                self._refused = kind_of(error) is SendErrorKind.DENIED
                # Diagnosed from time to time only: without a response it takes seconds.
                diagnose = attempt % _EXPLAIN_EVERY == 0 and not self._refused
                reason = await asyncio.to_thread(why_unreachable, self._settings) if diagnose else None
                log.warning(
                    "can't consume topic %s, retrying: %s",
                    self._topic,
                    self._refusal if self._refused else reason or str(error) or "no response",
                    extra={"event": "consume_failed"},
                )
                await asyncio.sleep(_RETRY_SECONDS[min(attempt, len(_RETRY_SECONDS) - 1)])
                attempt += 1

    async def _follow(self, consumer: Consumer) -> None:
        partitions = [TopicPartition(self._topic, p) for p in await self._partitions(consumer)]
        consumer.assign(partitions)
        if self._tail:
            self._applied = await consumer.end_offsets(partitions) | self._applied
        for partition in partitions:
            consumer.seek(partition, self._applied.get(partition, 0))
        while True:
            if self.age > _END_OFFSETS_SECONDS:
                await self._check_end(consumer, partitions)
            for partition, records in (await consumer.getmany(timeout_ms=1000)).items():
                for record in records:
                    self._apply_record(record.key, record.value)
                self._applied[partition] = records[-1].offset + 1
            async with self._changed:
                self._changed.notify_all()

    async def _partitions(self, consumer: Consumer) -> list[int]:
        while True:
            # `add_topic` only requests the metadata of a new topic; a retry needs a forced update.
            await consumer._client.add_topic(self._topic)
            await consumer._client.force_metadata_update()
            partitions = consumer.partitions_for_topic(self._topic)
            if partitions:
                return sorted(partitions)
            if self._topic in consumer._client.cluster.unauthorized_topics:
                raise TopicAuthorizationFailedError(self._topic)
            log.warning(
                "topic %s is missing: run `svc migrate`", self._topic, extra={"event": "topic_missing"}
            )
            await asyncio.sleep(1.0)

    async def _check_end(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Compare the positions with the end offsets: only a response shows that nothing is missing."""
        requested_at = time.monotonic()
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                ends = await consumer.end_offsets(partitions)
                # The position, not the last record: compaction and markers leave offsets without a record.
                positions = [await consumer.position(p) >= end for p, end in ends.items()]
        except TimeoutError:
            return
        if all(positions):
            self._current_at = requested_at
            self._refused = False
            self.loaded.set()

    def _apply_record(self, key: bytes | None, value: bytes | None) -> None:
        try:
            self._apply(key or b"", value)
        except ValueError as error:
            log.warning(
                "skipping invalid record %r in %s: %s",
                key,
                self._topic,
                error,
                extra={"event": "record_skipped"},
            )

    async def reached(self, partition: int, offset: int) -> None:
        """Return once the record at `offset` has been applied."""
        tp = TopicPartition(self._topic, partition)
        async with self._changed:
            await self._changed.wait_for(lambda: self._applied.get(tp, 0) > offset)


async def _stop(consumer: Consumer) -> None:
    with suppress(KafkaError, OSError):
        await stop_consumer(consumer)


def follow_projects(settings: KafkaSettings, registry: ProjectRegistry) -> TopicFollower:
    """A follower that keeps the registry current; the caller runs `run()` and waits for `loaded`."""
    return TopicFollower(settings, Topic.PROJECTS, registry.apply)
