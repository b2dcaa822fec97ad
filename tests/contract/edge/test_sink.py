"""The sink writes each chunk to its partition, and says when Kafka refuses one or is away."""

import asyncio
import inspect
from collections.abc import AsyncIterator

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.producer.sender import Sender

from broker.errors import SinkUnavailable
from edge.delivery.kafka_sink import KafkaSink
from schemas.settings import KafkaSettings
from schemas.topics import Topic
from tests.eventually import eventually
from tests.integration.edge.edge_process import records
from tests.topics import EDGE_TOPICS, create_topics


@pytest.fixture
async def sink(kafka_bootstrap: str, topic_prefix: str) -> AsyncIterator[KafkaSink]:
    await create_topics(kafka_bootstrap, topic_prefix, 4, EDGE_TOPICS)
    sink = KafkaSink(KafkaSettings(kafka_bootstrap=kafka_bootstrap, topic_prefix=topic_prefix), 5.0)
    await sink.start()
    await eventually(lambda: sink.up)
    yield sink
    await sink.stop()


async def test_record_is_in_its_partition_and_keeps_its_key(
    sink: KafkaSink, kafka_bootstrap: str, topic_prefix: str
) -> None:
    assert sink.partitions == 4
    await asyncio.gather(*(sink.send(Topic.EVENTS, b"%d" % n, n % 4) for n in range(40)))
    found = await records(kafka_bootstrap, topic_prefix + Topic.EVENTS.title)
    for partition in range(4):
        assert [record.value for record in found if record.partition == partition] == [
            b"%d" % n for n in range(40) if n % 4 == partition
        ]
    await sink.send(Topic.OUTCOMES, b"value", key=b"key")
    (record,) = await records(kafka_bootstrap, topic_prefix + Topic.OUTCOMES.title)
    assert (record.key, record.value, record.headers) == (b"key", b"value", {})


async def test_sink_that_is_unreachable_refuses_without_waiting() -> None:
    sink = KafkaSink(KafkaSettings(kafka_bootstrap="127.0.0.1:1"), 60.0)
    await sink.start()
    assert not sink.up
    async with asyncio.timeout(60):
        with pytest.raises(SinkUnavailable):
            await sink.send(Topic.EVENTS, b"x", 0)
    await sink.stop()


async def test_kafka_that_was_never_there_is_known_to_have_been_tried_and_leaves_no_task() -> None:
    sink = KafkaSink(KafkaSettings(kafka_bootstrap="127.0.0.1:1"), 1.0)
    await sink.start()
    await eventually(lambda: sink.attempted)
    await sink.stop()
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


async def test_record_too_large_for_the_broker_does_not_open_the_circuit(sink: KafkaSink) -> None:
    with pytest.raises(SinkUnavailable):
        await sink.send(Topic.EVENTS, b"x" * (5 << 20), 0)
    assert sink.up
    await sink.send(Topic.EVENTS, b"x", 0)


async def test_private_parts_of_aiokafka_that_the_sink_leans_on_are_still_there() -> None:
    """Fails when aiokafka changes there: then compare `broker.producer` with it."""
    producer = AIOKafkaProducer(bootstrap_servers="127.0.0.1:1")
    assert inspect.iscoroutinefunction(Sender._send_produce_req)
    assert producer._sender._sender_task is None
    assert producer._closed is False
    assert inspect.iscoroutinefunction(producer.client.close)
    assert callable(producer.client.cluster.leader_for_partition)
    await producer.stop()
