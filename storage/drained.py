"""Whether the pipeline has read its topics to their ends: figures of one that hasn't differ because events are under way."""

from collections.abc import Mapping

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from msgspec import Struct

from schemas.kafka import calm, client_options, name_of
from schemas.settings import KafkaSettings
from schemas.topics import Topic


class Lag(Struct, frozen=True, rename="camel"):
    """Records of a topic that a consumer group hasn't committed yet."""

    group: str
    topic: str
    records: int


def readers(processors: str, writer: str) -> dict[str, list[Topic]]:
    """The consumer groups of the pipeline, given their settings' names, and what each reads."""
    return {
        processors: [Topic.EVENTS, Topic.ISSUE_DELTAS],
        writer: [Topic.GROUPED],
        f"{writer}-records": [Topic.ISSUES, Topic.ISSUE_ACTIVITY, Topic.OUTCOMES],
    }


async def lags(settings: KafkaSettings, groups: Mapping[str, list[Topic]]) -> list[Lag]:
    """The groups that are behind, and by how much. Raises KafkaError."""
    admin = AIOKafkaAdminClient(**client_options(settings))
    consumer = AIOKafkaConsumer(**client_options(settings))
    calm(admin._client)
    calm(consumer._client)
    await admin.start()
    try:
        await consumer.start()
        try:
            found = []
            for group, topics in groups.items():
                for topic in topics:
                    name = name_of(settings, topic)
                    behind = await _behind(admin, consumer, group, name)
                    if behind:
                        found.append(Lag(group=group, topic=name, records=behind))
            return found
        finally:
            await consumer.stop()
    finally:
        await admin.close()


async def _behind(admin: AIOKafkaAdminClient, consumer: AIOKafkaConsumer, group: str, topic: str) -> int:
    described = await admin.describe_topics([topic])
    places = [TopicPartition(topic, p["partition"]) for p in described[0]["partitions"]]
    if not places:
        return 0
    ends = await consumer.end_offsets(places)
    begins = await consumer.beginning_offsets(places)
    committed = await admin.list_consumer_group_offsets(group, partitions=places)
    # Without a commit a group starts at the beginning; an end without records left has nothing to be read.
    return sum(max(0, ends[p] - max(committed[p].offset, begins[p])) for p in places)
