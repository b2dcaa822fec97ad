"""What every sink does: the one in memory is held to the same as the one that writes to Kafka."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.producer.sender import Sender

from broker.errors import SinkUnavailable
from edge.delivery.kafka_sink import KafkaSink
from edge.delivery.sink import Sink
from schemas.settings import KafkaSettings
from schemas.topics import Topic
from tests.eventually import eventually
from tests.integration.edge.edge_process import records
from tests.topics import create_topics
from tests.unit.edge.delivery.memory_sink import MemorySink

Read = Callable[[Topic], Awaitable[list[tuple[int | None, bytes | None, bytes]]]]


@pytest.fixture(params=["memory", "kafka"])
async def sink_and_read(
    request: pytest.FixtureRequest, topic_prefix: str
) -> AsyncIterator[tuple[Sink, Read]]:
    if request.param == "memory":
        memory = MemorySink(4)

        async def read_memory(topic: Topic) -> list[tuple[int | None, bytes | None, bytes]]:
            return [(r.partition, r.key, r.value) for r in memory.records if r.topic is topic]

        yield memory, read_memory
        return
    bootstrap: str = request.getfixturevalue("kafka_bootstrap")
    await create_topics(bootstrap, topic_prefix, 4)
    sink = KafkaSink(KafkaSettings(kafka_bootstrap=bootstrap, topic_prefix=topic_prefix), 5.0)

    async def read_kafka(topic: Topic) -> list[tuple[int | None, bytes | None, bytes]]:
        return [(r.partition, r.key, r.value) for r in await records(bootstrap, topic_prefix + topic.title)]

    await sink.start()
    yield sink, read_kafka
    await sink.stop()


async def test_sink_comes_up_and_knows_its_partitions(sink_and_read: tuple[Sink, Read]) -> None:
    sink, _ = sink_and_read
    await eventually(lambda: sink.up)
    assert sink.partitions == 4


async def test_record_that_was_sent_stands_in_its_partition(sink_and_read: tuple[Sink, Read]) -> None:
    sink, read = sink_and_read
    await eventually(lambda: sink.up)
    await asyncio.gather(*(sink.send(Topic.EVENTS, b"%d" % n, n % 4) for n in range(40)))
    found = await read(Topic.EVENTS)
    for partition in range(4):
        assert [value for p, _, value in found if p == partition] == [
            b"%d" % n for n in range(40) if n % 4 == partition
        ]


async def test_record_keeps_its_key(sink_and_read: tuple[Sink, Read]) -> None:
    sink, read = sink_and_read
    await eventually(lambda: sink.up)
    await sink.send(Topic.OUTCOMES, b"value", key=b"key")
    assert [(key, value) for _, key, value in await read(Topic.OUTCOMES)] == [(b"key", b"value")]


async def test_sink_that_is_unreachable_refuses_at_once() -> None:
    memory = MemorySink()
    memory.up = False
    kafka = KafkaSink(KafkaSettings(kafka_bootstrap="127.0.0.1:1"), 60.0)
    for sink in (memory, kafka):
        await sink.start()
        assert not sink.up
        async with asyncio.timeout(1):
            with pytest.raises(SinkUnavailable):
                await sink.send(Topic.EVENTS, b"x", 0)
        await sink.stop()


async def test_kafka_that_was_never_there_is_known_to_have_been_tried_and_leaves_no_task() -> None:
    sink = KafkaSink(KafkaSettings(kafka_bootstrap="127.0.0.1:1"), 1.0)
    await sink.start()
    await eventually(lambda: sink.attempted)
    await sink.stop()
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


async def test_record_too_large_for_the_broker_does_not_open_the_circuit(
    kafka_bootstrap: str, topic_prefix: str
) -> None:
    await create_topics(kafka_bootstrap, topic_prefix, 1)
    sink = KafkaSink(KafkaSettings(kafka_bootstrap=kafka_bootstrap, topic_prefix=topic_prefix), 5.0)
    await sink.start()
    await eventually(lambda: sink.up)
    with pytest.raises(SinkUnavailable):
        await sink.send(Topic.EVENTS, b"x" * (5 << 20), 0)
    assert sink.up
    await sink.send(Topic.EVENTS, b"x", 0)
    await sink.stop()


async def test_private_parts_of_aiokafka_that_the_sink_leans_on_are_still_there() -> None:
    """Fails when aiokafka changes there: then `broker.producer` is to be read again beside it."""
    producer = AIOKafkaProducer(bootstrap_servers="127.0.0.1:1")
    assert inspect.iscoroutinefunction(Sender._send_produce_req)
    assert producer._sender._sender_task is None
    assert producer._closed is False
    assert inspect.iscoroutinefunction(producer.client.close)
    assert callable(producer.client.cluster.leader_for_partition)
    await producer.stop()
