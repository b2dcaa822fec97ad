"""How far the pipeline is behind, on a real broker: records of known ages, and groups that commit by hand."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import NewTopic

from broker.client import open_admin, open_consumer, open_producer
from broker.pipeline_lag import Behind, PipelineLag
from broker.topics import visible
from schemas.settings import KafkaSettings
from tests.eventually import eventually

MINUTE_MS = 60_000
PROCESSORS, WRITER = "lag-processors", "lag-writer"


async def create(settings: KafkaSettings) -> None:
    """Both topics, which keep the times that a test gives to records; of the real `events` the broker's count."""
    names = [settings.topic_prefix + topic for topic in ("events", "grouped")]
    async with open_admin(settings) as admin:
        await admin.create_topics([NewTopic(name, 2, 1) for name in names])
        await visible(admin, names)


@pytest.fixture
async def settings(kafka_bootstrap: str, topic_prefix: str) -> KafkaSettings:
    settings = KafkaSettings(kafka_bootstrap=kafka_bootstrap, topic_prefix=topic_prefix)
    await create(settings)
    return settings


@asynccontextmanager
async def looking(settings: KafkaSettings) -> AsyncIterator[PipelineLag]:
    prefix = settings.topic_prefix
    lag = PipelineLag(settings, f"{prefix}{PROCESSORS}", f"{prefix}{WRITER}", look_seconds=0.1)
    task = asyncio.create_task(lag.run())
    try:
        yield lag
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def send(settings: KafkaSettings, topic: str, *minutes_ago: int) -> int:
    """One record for each age, in partition 1; the time from which they are counted."""
    now_ms = time.time_ns() // 1_000_000
    async with open_producer(settings) as producer:
        for minutes in minutes_ago:
            stamp = now_ms - minutes * MINUTE_MS
            await producer.send_and_wait(settings.topic_prefix + topic, b"x", partition=1, timestamp_ms=stamp)
    return now_ms


async def commit(settings: KafkaSettings, group: str, topic: str, offset: int) -> None:
    # Without auto-commit: at its stop it would commit the position that it began at, if that had been fetched by then.
    options = {"group_id": settings.topic_prefix + group, "enable_auto_commit": False}
    async with open_consumer(settings, **options) as consumer:
        partition = TopicPartition(settings.topic_prefix + topic, 1)
        consumer.assign([partition])
        await consumer.commit({partition: offset})


def waiting(lag: PipelineLag) -> int:
    return lag.lag.behind.records if lag.lag.behind else 0


def near(behind: Behind | None, moment_ms: int) -> bool:
    """Whether the oldest waiting record is from then, within 2 %; never later."""
    age = time.time_ns() // 1_000_000 - moment_ms
    return behind is not None and -0.03 * age - 1_000 <= behind.until_ms - moment_ms <= 0


async def test_lag_is_dated_by_the_oldest_record_that_a_group_has_not_committed(
    settings: KafkaSettings,
) -> None:
    async with looking(settings) as lag:
        await eventually(lambda: lag.lag.is_known)
        assert lag.lag.behind is None
        sent = await send(settings, "events", 60, 30, 10)
        await commit(settings, PROCESSORS, "events", 1)
        await eventually(lambda: near(lag.lag.behind, sent - 30 * MINUTE_MS))
        assert waiting(lag) == 2
        await commit(settings, PROCESSORS, "events", 2)
        await eventually(lambda: near(lag.lag.behind, sent - 10 * MINUTE_MS))
        await commit(settings, PROCESSORS, "events", 3)
        await eventually(lambda: lag.lag.is_known and lag.lag.behind is None)
        sent = await send(settings, "grouped", 5)
        await eventually(lambda: near(lag.lag.behind, sent - 5 * MINUTE_MS))
        await commit(settings, WRITER, "grouped", 1)
        await eventually(lambda: lag.lag.is_known and lag.lag.behind is None)


async def test_new_records_are_a_steady_flow(settings: KafkaSettings) -> None:
    await send(settings, "events", 0)
    async with looking(settings) as lag:
        await eventually(lambda: lag.lag.is_known)
        assert lag.lag.behind is None


async def test_without_the_topics_nothing_is_known(kafka_bootstrap: str, topic_prefix: str) -> None:
    settings = KafkaSettings(kafka_bootstrap=kafka_bootstrap, topic_prefix=topic_prefix)
    async with looking(settings) as lag:
        first = lag.lag
        await eventually(lambda: lag.lag is not first)
        assert not lag.lag.is_known
        await create(settings)
        await eventually(lambda: lag.lag.is_known)
