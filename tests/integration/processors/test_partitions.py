"""A topic with fewer partitions than its source is named by `svc migrate` and at the start of a worker."""

import asyncio
from pathlib import Path

from aiokafka.admin import NewTopic

from broker.client import open_admin
from broker.topics import ensure_topics
from schemas.settings import KafkaSettings
from tests.integration.processors.process import WorkerProcess


async def test_a_topic_that_lacks_partitions_of_its_source_is_named(
    kafka_bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    settings = KafkaSettings(kafka_bootstrap=kafka_bootstrap, topic_prefix=topic_prefix)
    async with open_admin(settings) as admin:
        await admin.create_topics([NewTopic(f"{topic_prefix}outcomes", 1, 1)])
    report = await ensure_topics(settings)
    named = f"{topic_prefix}outcomes has 1, fewer than the 4 of {topic_prefix}events"
    assert any(named in difference.message and not difference.harmless for difference in report.differences)
    worker = WorkerProcess(kafka_bootstrap, topic_prefix, tmp_path).start()
    assert await asyncio.to_thread(worker.wait) == 1
    log = worker.log.read_text()
    assert named in log
    assert "Traceback" not in log
