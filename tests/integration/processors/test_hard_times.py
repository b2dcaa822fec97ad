"""Workers that hang, and brokers that go away: nothing is lost and nothing counted twice."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from local.kafka.local_kafka import LocalKafka
from tests.eventually import eventually
from tests.integration.conftest import PARTITIONS, Start
from tests.integration.processors import readback
from tests.integration.processors.feed import Feed, produce
from tests.integration.processors.process import WorkerProcess
from tests.integration.processors.test_exactness import (
    assert_exact,
    backlog,
    processed,
    until_counted,
)
from tests.servers import CACHE
from tests.topics import create_topics

pytestmark = pytest.mark.slow


async def test_a_worker_that_fetches_nothing_any_more_is_ended_and_goes_on_when_it_is_started_again(
    kafka_bootstrap: str, prefix: str, start: Start, tmp_path: Path
) -> None:
    feed = Feed(PARTITIONS, seed=13)
    await produce(kafka_bootstrap, prefix + "events", backlog(feed, 8, 20))
    worker = start(module="tests.integration.processors.deaf_worker")
    await until_counted(kafka_bootstrap, prefix, feed, worker)
    (tmp_path / "deaf").touch()
    await eventually((tmp_path / "deafened").exists)
    await produce(kafka_bootstrap, prefix + "events", backlog(feed, 80, 20))
    assert worker.wait(120) == 1
    assert "no progress" in worker.log.read_text().splitlines()[-1]
    worker.start()
    await until_counted(kafka_bootstrap, prefix, feed, worker)
    await assert_exact(kafka_bootstrap, prefix, feed)


async def test_a_worker_whose_event_loop_is_blocked_is_ended_and_goes_on_when_it_is_started_again(
    kafka_bootstrap: str, prefix: str, start: Start, tmp_path: Path
) -> None:
    feed = Feed(PARTITIONS, seed=14)
    (tmp_path / "block").touch()
    await produce(kafka_bootstrap, prefix + "events", backlog(feed, 40, 20))
    worker = start(module="tests.integration.processors.blocked_worker")
    assert await asyncio.to_thread(worker.wait, 120) == 1
    assert "event loop: no progress" in worker.log.read_text().splitlines()[-1]
    worker.start()
    await until_counted(kafka_bootstrap, prefix, feed, worker)
    await assert_exact(kafka_bootstrap, prefix, feed)


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[LocalKafka]:
    """A broker of the test's own, that may be stopped."""
    kafka = await asyncio.to_thread(LocalKafka(tmp_path / "kafka", CACHE).start)
    yield kafka
    await asyncio.to_thread(kafka.stop)


@pytest.mark.parametrize("how", ["stop", "kill"])
async def test_a_broker_that_restarts_costs_nothing(
    broker: LocalKafka, topic_prefix: str, tmp_path: Path, how: str
) -> None:
    feed = Feed(PARTITIONS, seed=12)
    await create_topics(broker.bootstrap, topic_prefix, PARTITIONS)
    await produce(broker.bootstrap, topic_prefix + "events", backlog(feed, 500, 10))
    worker = WorkerProcess(broker.bootstrap, topic_prefix, tmp_path, SVC_PROCESSORS_BATCH_CHUNKS="2").start()
    try:
        await eventually(lambda: processed(worker, 60))
        await asyncio.to_thread(getattr(broker, how))
        await asyncio.to_thread(broker.start)
        await until_counted(broker.bootstrap, topic_prefix, feed, worker)
        await assert_exact(broker.bootstrap, topic_prefix, feed)
        assert len(await readback.issues(broker.bootstrap, topic_prefix + "issues")) > 0
    finally:
        worker.kill()
