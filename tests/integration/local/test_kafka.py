"""A broker of our own, by its life."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import NewTopic

from broker.client import open_admin
from local.kafka.local_kafka import LocalKafka
from schemas.settings import KafkaSettings
from tests.servers import CACHE

TOPIC = "kept"
ROOT = Path(__file__).parents[3]


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[LocalKafka]:
    broker = LocalKafka(tmp_path / "kafka", CACHE).start()
    yield broker
    broker.stop()


async def create(bootstrap: str) -> None:
    async with open_admin(KafkaSettings(kafka_bootstrap=bootstrap)) as admin:
        await admin.create_topics([NewTopic(TOPIC, 1, 1)])


async def produce(bootstrap: str, values: list[bytes]) -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", enable_idempotence=True) as producer:
        for value in values:
            await producer.send_and_wait(TOPIC, value, partition=0)


async def consume(bootstrap: str, count: int) -> list[bytes]:
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(TOPIC, 0)])
        async with asyncio.timeout(30):
            return [(await consumer.getone()).value for _ in range(count)]


async def test_acknowledged_records_are_there_after_kill_and_stop(kafka: LocalKafka) -> None:
    address = kafka.bootstrap
    await create(address)
    await produce(address, [b"1", b"2"])
    await asyncio.to_thread(kafka.kill)
    assert kafka.pid is None
    await asyncio.to_thread(kafka.start)
    assert kafka.bootstrap == address
    await produce(address, [b"3"])
    await asyncio.to_thread(kafka.stop)
    await asyncio.to_thread(kafka.start)
    assert await consume(address, 3) == [b"1", b"2", b"3"]


@pytest.mark.slow
async def test_broker_on_the_same_data_may_get_another_port(kafka: LocalKafka) -> None:
    await create(kafka.bootstrap)
    await produce(kafka.bootstrap, [b"1"])
    await asyncio.to_thread(kafka.stop)
    (kafka.directory / "ports.json").unlink()
    moved = LocalKafka(kafka.directory, CACHE)
    await asyncio.to_thread(moved.start)
    try:
        assert moved.bootstrap != kafka.bootstrap
        assert await consume(moved.bootstrap, 1) == [b"1"]
    finally:
        await asyncio.to_thread(moved.stop)


@pytest.mark.slow
def test_broker_is_not_ready_because_another_answers_on_its_port(kafka: LocalKafka, tmp_path: Path) -> None:
    other = LocalKafka(tmp_path / "other", CACHE)
    # As where both chose their ports before either listened.
    other._ports = kafka._ports
    other.prepare()
    assert kafka.ready()
    assert not other.ready()


def test_overrides_reach_the_broker(tmp_path: Path) -> None:
    broker = LocalKafka(tmp_path, CACHE, overrides={"num.partitions": "3"})
    broker.prepare()
    assert "num.partitions=3\n" in (tmp_path / "server.properties").read_text()
