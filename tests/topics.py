"""Topics for a test, with a random prefix, made as `svc migrate` makes them."""

from aiokafka.admin import NewTopic

from broker.client import open_admin
from broker.topics import ensure_topics, visible
from schemas.settings import KafkaSettings
from schemas.topics import Topic, topic_specs
from tests.eventually import eventually

EDGE_TOPICS = (Topic.EVENTS, Topic.OUTCOMES, Topic.PROJECTS)
"""Those that an edge writes or follows."""


async def create_topics(
    bootstrap: str, prefix: str, partitions: int = 2, topics: tuple[Topic, ...] = tuple(Topic)
) -> None:
    """Create these topics under the prefix on a broker of one."""
    names = {prefix + topic.title for topic in topics}
    specs = [spec for spec in topic_specs(prefix, {}, partitions, 1) if spec.name in names]
    async with open_admin(KafkaSettings(kafka_bootstrap=bootstrap)) as admin:
        answer = await admin.create_topics(
            [NewTopic(s.name, s.partitions, s.replication, topic_configs=s.configs) for s in specs]
        )
        await visible(admin, [spec.name for spec in specs])
    assert [error for error in answer.topic_errors if error[1]] == []


async def delete_topics(bootstrap: str, prefix: str) -> None:
    """Delete the topics that a test left under its prefix."""
    async with open_admin(KafkaSettings(kafka_bootstrap=bootstrap)) as admin:
        left = [name for name in await admin.list_topics() if name.startswith(prefix)]
        if left:
            await admin.delete_topics(left)


async def create_again(settings: KafkaSettings, topic: str) -> None:
    """Delete a topic with all its records, and create it."""
    async with open_admin(settings) as admin:
        await admin.delete_topics([topic])

        async def is_deleted() -> bool:
            return topic not in await admin.list_topics()

        await eventually(is_deleted, 30)
    await ensure_topics(settings)
