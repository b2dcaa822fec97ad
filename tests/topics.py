"""Topics for a test, with a random prefix, made as `svc migrate` makes them."""

from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from broker.topics import visible
from schemas.topics import topic_specs


async def create_topics(bootstrap: str, prefix: str, partitions: int = 2) -> None:
    """Create every topic under the prefix on a broker of one."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    specs = topic_specs(prefix, {}, partitions, 1)
    try:
        answer = await admin.create_topics(
            [NewTopic(s.name, s.partitions, s.replication, topic_configs=s.configs) for s in specs]
        )
        await visible(admin, [spec.name for spec in specs])
    finally:
        await admin.close()
    refused = [error for error in answer.topic_errors if error[1]]
    assert refused == []
