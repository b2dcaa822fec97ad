"""What the edge writes to Kafka is what the topic's description says."""

from aiokafka import AIOKafkaConsumer, ConsumerRecord

from edge.delivery.kafka_sink import KafkaSink
from schemas.settings import EdgeSettings
from schemas.topics import Topic
from tests.eventually import eventually
from tests.topics import create_topics


async def test_a_chunk_names_its_form_in_a_header(kafka_bootstrap: str, topic_prefix: str) -> None:
    await create_topics(kafka_bootstrap, topic_prefix)
    sink = KafkaSink(EdgeSettings(kafka_bootstrap=kafka_bootstrap, topic_prefix=topic_prefix), deadline=10)
    await sink.start()
    await eventually(lambda: sink.up)
    await sink.send(Topic.EVENTS, b"chunk", partition=1)
    await sink.send(Topic.OUTCOMES, b"{}", key=b"1")
    await sink.stop()
    names = [topic_prefix + "events", topic_prefix + "outcomes"]
    async with AIOKafkaConsumer(
        *names, bootstrap_servers=kafka_bootstrap, auto_offset_reset="earliest"
    ) as consumer:
        found: dict[str, ConsumerRecord[bytes, bytes]] = {}
        while len(found) < 2:
            record = await consumer.getone()
            found[record.topic] = record
    events, outcomes = (found[name] for name in names)
    assert (events.key, events.value, events.partition) == (None, b"chunk", 1)
    assert list(events.headers) == [("format", b"chunk-1")]
    assert list(outcomes.headers) == []
