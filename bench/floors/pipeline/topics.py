"""Makes the floor's topics and tables, and ends."""

import asyncio
import os

from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from bench.floors.pipeline import records, tables
from storage.client import open_client


async def main() -> None:
    """Topics for records of 4 MiB; the last two are compacted."""
    admin = AIOKafkaAdminClient(bootstrap_servers=records.BOOTSTRAP)
    await admin.start()
    large = {"max.message.bytes": str(4 << 20)}
    compacted = {**large, "cleanup.policy": "compact"}
    await admin.create_topics(
        [
            NewTopic(
                name,
                records.PARTITIONS,
                1,
                topic_configs=compacted if name in {"seen", "issues"} else large,
            )
            for name in records.TOPICS
        ]
    )
    await admin.close()
    client = open_client(os.environ["FLOOR_CLICKHOUSE"])
    for statement in tables.statements():
        client.command(statement)
    client.close()


if __name__ == "__main__":
    asyncio.run(main())
