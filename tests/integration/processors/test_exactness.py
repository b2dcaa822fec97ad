"""Every event counted once and forwarded once, whatever happens to the workers and their tables."""

import asyncio
from pathlib import Path

from aiokafka import TopicPartition
from aiokafka.admin import RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from broker.client import open_admin, open_consumer
from schemas.issues import IssueRecord
from schemas.settings import KafkaSettings
from tests.eventually import eventually
from tests.integration.conftest import PARTITIONS, Start
from tests.integration.processors import readback
from tests.integration.processors.feed import Feed, produce
from tests.integration.processors.process import WorkerProcess

SMALL_TAKES = {"SVC_PROCESSORS_BATCH_CHUNKS": "8"}
RECORDS = "svc_processors_records_total"


def backlog(feed: Feed, records: int, size: int = 50) -> list[tuple[int, bytes]]:
    return [(i % feed.partitions, feed.chunk(i % feed.partitions, size)) for i in range(records)]


def processed(worker: WorkerProcess, records: int) -> bool:
    assert worker.running, worker.log.read_text()[-2000:]
    return worker.metric(RECORDS) >= records


async def assert_exact(bootstrap: str, prefix: str, feed: Feed) -> None:
    """Each id is forwarded once in effect, issues count the forwarded events, outcomes add up."""
    chunks = await readback.grouped_once(bootstrap, prefix)
    forwarded = readback.events_of(chunks)
    assert set(forwarded) == feed.ids
    assert set(forwarded.values()) == {1}
    issues = await readback.issues(bootstrap, prefix + "issues")
    assert {key: issue.events for key, issue in issues.items()} == dict(readback.issues_of(chunks))
    outcomes = await readback.outcomes(bootstrap, prefix + "outcomes")
    assert outcomes["accepted"] == feed.sent
    assert outcomes["duplicate"] == feed.sent - len(feed.ids)
    activities = await readback.activities(bootstrap, prefix + "issue-activity")
    created = [activity for activity in activities if activity.kind == "created"]
    assert {a.issue for a in created} == set(issues)
    assert len({a.id for a in created}) == len(issues)


async def until_counted(bootstrap: str, prefix: str, feed: Feed, *workers: WorkerProcess) -> None:
    issues: dict[str, IssueRecord] = {}
    async with readback.reading(bootstrap, prefix + "issues") as more:

        async def done() -> bool:
            for worker in workers:
                if not worker.running:
                    worker.start()
            issues.update(readback.states(await more()))
            return sum(issue.events for issue in issues.values()) >= len(feed.ids)

        await eventually(done, timeout=120)


async def test_events_are_counted_once_while_workers_come_and_go(
    kafka_bootstrap: str, prefix: str, start: Start
) -> None:
    feed = Feed(PARTITIONS, seed=2)
    first = start("a", **SMALL_TAKES)
    await eventually(first.ready)
    sending = asyncio.create_task(produce_slowly(kafka_bootstrap, prefix + "events", backlog(feed, 400, 20)))
    others = [start("b", **SMALL_TAKES), start("c", **SMALL_TAKES)]
    for worker in others:
        await eventually(worker.ready)
    assert others[1].stop() == 0
    others[0].kill()
    others[0].start()
    await sending
    await until_counted(kafka_bootstrap, prefix, feed, first, others[0])
    await assert_exact(kafka_bootstrap, prefix, feed)


async def produce_slowly(bootstrap: str, topic: str, records: list[tuple[int, bytes]]) -> None:
    for at in range(0, len(records), 20):
        await produce(bootstrap, topic, records[at : at + 20])


async def truncate(bootstrap: str, topic: str) -> None:
    """Delete a topic's records."""
    settings = KafkaSettings(kafka_bootstrap=bootstrap)
    async with open_consumer(settings) as consumer, open_admin(settings) as admin:
        if topic.endswith(("seen", "issues")):
            # A broker deletes no records of a topic that is only compacted.
            both = {"cleanup.policy": "compact,delete"}
            await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, both)])
        ends = await consumer.end_offsets([TopicPartition(topic, p) for p in range(PARTITIONS)])
        await admin.delete_records({tp: RecordsToDelete(before_offset=end) for tp, end in ends.items()})


async def test_a_worker_takes_up_where_it_stopped_without_doing_anything_again(
    kafka_bootstrap: str, prefix: str, start: Start, tmp_path: Path
) -> None:
    feed = Feed(PARTITIONS, seed=5)
    await produce(kafka_bootstrap, prefix + "events", backlog(feed, 80))
    worker = start(**SMALL_TAKES)
    await until_counted(kafka_bootstrap, prefix, feed, worker)
    assert worker.stop() == 0
    await produce(kafka_bootstrap, prefix + "events", backlog(feed, 8))
    worker.start()
    await until_counted(kafka_bootstrap, prefix, feed, worker)
    # At most the last take of each partition is forwarded again.
    assert worker.metric("svc_processors_records_forwarded_again_total") <= PARTITIONS * 8
    assert worker.metric(RECORDS) <= 8 + PARTITIONS * 8 + 80
    await assert_exact(kafka_bootstrap, prefix, feed)
