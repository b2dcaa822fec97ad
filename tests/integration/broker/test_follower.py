"""Following a compacted topic on a real broker."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from unittest.mock import AsyncMock

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.cluster import ClusterMetadata
from aiokafka.structs import PartitionMetadata

from broker.client import METADATA_PAUSE_SECONDS, TopicFollower, follow_projects, pause_metadata_retries
from local.kafka.local_kafka import LocalKafka
from schemas.health import Part
from schemas.ids import new_token
from schemas.projects import Project, ProjectRegistry, Token, encode_project
from schemas.settings import EdgeSettings
from schemas.topics import Topic
from tests.eventually import eventually
from tests.servers import CACHE
from tests.topics import create_topics

WHEN = "2026-01-01T00:00:00.000Z"


@pytest.fixture
async def settings(kafka_bootstrap: str, topic_prefix: str) -> EdgeSettings:
    await create_topics(kafka_bootstrap, topic_prefix, topics=(Topic.PROJECTS,))
    return EdgeSettings(kafka_bootstrap=kafka_bootstrap, topic_prefix=topic_prefix)


@pytest.fixture
async def producer(kafka_bootstrap: str) -> AsyncIterator[AIOKafkaProducer]:
    async with AIOKafkaProducer(bootstrap_servers=kafka_bootstrap, acks="all") as made:
        yield made


@pytest.fixture
async def running() -> AsyncIterator[list[asyncio.Task[None]]]:
    tasks: list[asyncio.Task[None]] = []
    yield tasks
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def loaded(follower: TopicFollower, running: list[asyncio.Task[None]]) -> TopicFollower:
    """The follower, at work."""
    running.append(asyncio.create_task(follower.run()))
    async with asyncio.timeout(60):
        await follower.loaded.wait()
    return follower


def project(number: int, token: str) -> Project:
    return Project(str(number), "p", WHEN, (Token(token, WHEN),))


async def test_records_of_the_topic_are_applied_when_loaded_and_later_ones_soon(
    settings: EdgeSettings, producer: AIOKafkaProducer, running: list[asyncio.Task[None]]
) -> None:
    name, first, second = settings.topic_prefix + "projects", new_token(), new_token()
    await producer.send_and_wait(name, encode_project(project(1, first)), key=b"1")
    registry = ProjectRegistry()
    follower = await loaded(follow_projects(settings, registry), running)
    assert registry.by_token(first) is not None
    written = await producer.send_and_wait(name, encode_project(project(2, second)), key=b"2")
    async with asyncio.timeout(30):
        await follower.reached(written.partition, written.offset)
    assert registry.by_token(second) is not None


@pytest.mark.slow
async def test_age_is_small_without_new_records_and_grows_while_the_broker_is_frozen(
    tmp_path: Path, running: list[asyncio.Task[None]]
) -> None:
    kafka = LocalKafka(tmp_path / "kafka", CACHE)
    await asyncio.to_thread(kafka.start, 120)
    try:
        await create_topics(kafka.bootstrap, "age.", topics=(Topic.PROJECTS,))
        follower = follow_projects(
            EdgeSettings(kafka_bootstrap=kafka.bootstrap, topic_prefix="age."), ProjectRegistry()
        )
        assert follower.age == float("inf")
        assert follower.answering() == Part(ok=False, detail="connecting")
        await loaded(follower, running)
        assert follower.answering() == Part(ok=True)
        # The topic stays empty: only the broker's answers make it young again.
        await eventually(lambda: follower.age > 1, 60)
        await eventually(lambda: follower.age < 1, 60)
        assert kafka.pid is not None
        os.kill(kafka.pid, signal.SIGSTOP)
        try:
            await eventually(lambda: not follower.answering().ok, 60)
            assert "no broker has answered for" in follower.answering().detail
        finally:
            os.kill(kafka.pid, signal.SIGCONT)
        await eventually(lambda: follower.answering().ok, 60)
    finally:
        await asyncio.to_thread(kafka.stop)


async def test_a_bad_record_is_passed_over(
    settings: EdgeSettings, producer: AIOKafkaProducer, running: list[asyncio.Task[None]]
) -> None:
    name, token = settings.topic_prefix + "projects", new_token()
    await producer.send_and_wait(name, b"{", key=b"1")
    await producer.send_and_wait(name, b"{}", key=b"no number")
    await producer.send_and_wait(name, encode_project(project(3, token)), key=b"3")
    registry = ProjectRegistry()
    await loaded(follow_projects(settings, registry), running)
    assert [p.id for p in registry] == ["3"]


async def test_a_topic_that_is_made_later_is_waited_for(
    kafka_bootstrap: str, topic_prefix: str, running: list[asyncio.Task[None]]
) -> None:
    seen: list[bytes] = []
    early = EdgeSettings(kafka_bootstrap=kafka_bootstrap, topic_prefix=topic_prefix)
    follower = TopicFollower(early, Topic.PROJECTS, lambda key, _: seen.append(key))
    running.append(asyncio.create_task(follower.run()))
    await create_topics(kafka_bootstrap, topic_prefix, topics=(Topic.PROJECTS,))
    async with asyncio.timeout(30):
        await follower.loaded.wait()
    async with AIOKafkaProducer(bootstrap_servers=kafka_bootstrap) as producer:
        await producer.send_and_wait(topic_prefix + "projects", b"{}", key=b"7")
    await eventually(lambda: seen == [b"7"])


async def test_a_tail_begins_at_the_end_of_the_topic(
    settings: EdgeSettings, producer: AIOKafkaProducer, running: list[asyncio.Task[None]]
) -> None:
    name, seen = settings.topic_prefix + "projects", list[bytes]()
    await producer.send_and_wait(name, b"{}", key=b"1")
    await loaded(TopicFollower(settings, Topic.PROJECTS, lambda key, _: seen.append(key), tail=True), running)
    await producer.send_and_wait(name, b"{}", key=b"2")
    await eventually(lambda: seen == [b"2"])


@pytest.mark.parametrize(
    ("succeeds", "leader", "pauses"), [(False, 1, True), (True, -1, True), (True, 1, False)]
)
async def test_a_client_pauses_after_metadata_that_it_would_ask_for_again(
    monkeypatch: pytest.MonkeyPatch, succeeds: bool, leader: int, pauses: bool
) -> None:
    class Client:
        async def _metadata_update(self, *_: object) -> bool:
            return succeeds

    client, paused = Client(), AsyncMock()
    cluster = ClusterMetadata()
    cluster._partitions = {"topic": {0: PartitionMetadata("topic", 0, leader, [], [], error=None)}}
    pause_metadata_retries(client)
    monkeypatch.setattr("broker.client.asyncio.sleep", paused)
    assert await client._metadata_update(cluster) is succeeds
    assert [one.args for one in paused.call_args_list] == [(METADATA_PAUSE_SECONDS,)] * pauses
