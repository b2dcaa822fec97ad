from collections.abc import AsyncIterator

import msgspec
import pytest
from aiokafka import AIOKafkaProducer

from schemas.ids import hex64
from schemas.issues import Activity, IssueRecord, Outcome, encode_json
from schemas.projects import Project, encode_project
from storage.client import scalar
from tests.eventually import eventually
from tests.integration.storage.grouped import Stage, ended

ISSUE = IssueRecord(
    id=hex64(255), project_id="7", fingerprints=(hex64(100),), error_type="TypeError", message="m", culprit="c",
    first_seen_ms=1_760_000_000_000, last_seen_ms=1_760_000_000_000, events=5, users=2, environments={"prod": 5},
    last_event="0199ee65-f275-750f-87fc-3665cc81dda7", version=1,
)  # fmt: skip


@pytest.fixture
async def producer(stage: Stage) -> AsyncIterator[AIOKafkaProducer]:
    producer = AIOKafkaProducer(bootstrap_servers=stage.settings.kafka_bootstrap, acks="all")
    await producer.start()
    yield producer
    await producer.stop()


async def test_the_newest_record_of_an_issue_is_read_and_a_removed_one_is_not(
    stage: Stage, producer: AIOKafkaProducer
) -> None:
    topic = f"{stage.settings.topic_prefix}issues"
    client = stage.client()
    writer = stage.writer()

    def rows() -> list[tuple[object, ...]]:
        return [
            tuple(row)
            for row in client.query("SELECT issue_id, events, status, deleted FROM issues FINAL").result_rows
        ]

    with ended(writer):
        for version in (1, 2, 3):
            issue = msgspec.structs.replace(ISSUE, version=version, events=5 + version)
            await producer.send_and_wait(topic, encode_json(issue), key=issue.id.encode())
        await eventually(lambda: rows() == [(255, 8, "open", 0)])
        resolved = msgspec.structs.replace(ISSUE, version=4, events=8, status="resolved")
        await producer.send_and_wait(topic, encode_json(resolved), key=ISSUE.id.encode())
        await eventually(lambda: rows() == [(255, 8, "resolved", 0)])
        await producer.send_and_wait(topic, None, key=ISSUE.id.encode())
        await eventually(lambda: rows() == [(255, 8, "resolved", 1)])
    client.close()


async def test_an_issue_that_is_removed_and_written_again_is_there(
    stage: Stage, producer: AIOKafkaProducer
) -> None:
    topic, again = f"{stage.settings.topic_prefix}issues", msgspec.structs.replace(ISSUE, id=hex64(256))
    client = stage.client()

    def rows() -> list[tuple[object, ...]]:
        sql = "SELECT issue_id, version, deleted FROM issues FINAL ORDER BY issue_id"
        return [tuple(row) for row in client.query(sql).result_rows]

    # One batch of the writer has all of this.
    for value in (encode_json(ISSUE), None, encode_json(ISSUE)):
        await producer.send_and_wait(topic, value, key=ISSUE.id.encode())
    await producer.send_and_wait(topic, encode_json(again), key=again.id.encode())
    writer = stage.writer()
    with ended(writer):
        await eventually(lambda: rows() == [(255, 1, 0), (256, 1, 0)])
        await producer.send_and_wait(topic, None, key=again.id.encode())
        await eventually(lambda: rows() == [(255, 1, 0), (256, 1, 1)])
        # Removed by a stranger, and rebuilt as it was.
        await producer.send_and_wait(topic, encode_json(again), key=again.id.encode())
        await eventually(lambda: rows() == [(255, 1, 0), (256, 1, 0)])
    client.close()


async def test_activity_and_outcomes_that_come_twice_count_once(
    stage: Stage, producer: AIOKafkaProducer
) -> None:
    prefix = stage.settings.topic_prefix
    client = stage.client()
    writer = stage.writer()
    activity = Activity(
        "a1", hex64(255), "7", "resolved", "admin", "2026-11-02T03:04:05.678Z", {"in": "next"}
    )
    outcome = Outcome("7", "2026-11-02T03:04:00.000Z", "js/1", "invalid", "schema", 3, "edge-1", 9)
    with ended(writer):
        for _ in range(2):
            await producer.send_and_wait(
                f"{prefix}issue-activity", encode_json(activity), key=activity.issue.encode()
            )
            await producer.send_and_wait(f"{prefix}outcomes", encode_json([outcome]))
            await producer.send_and_wait(f"{prefix}outcomes", encode_json(outcome))
        await eventually(lambda: scalar(client, "SELECT count() FROM outcomes") > 0)
        await eventually(lambda: scalar(client, "SELECT count() FROM issue_activity FINAL") == 1)
        assert scalar(client, "SELECT sum(count) FROM outcomes FINAL") == 3
    client.close()


async def test_rows_that_a_killed_server_lost_are_there_after_the_repeat(
    stage: Stage, producer: AIOKafkaProducer
) -> None:
    """Also where it remembers their insert: it does so before the rows are in place."""
    outcomes = [
        Outcome("7", "2026-11-02T03:04:00.000Z", "js/1", "invalid", "schema", 3, "edge-1", number)
        for number in (1, 2)
    ]
    await producer.send_and_wait(f"{stage.settings.topic_prefix}outcomes", encode_json(outcomes))
    client = stage.client()
    counted = "SELECT sum(count) FROM outcomes FINAL"
    with ended(stage.writer()):
        await eventually(lambda: scalar(client, counted) == 6)
    client.command("ALTER TABLE outcomes DELETE WHERE sequence = 2 SETTINGS mutations_sync = 1")
    assert scalar(client, counted) == 3
    # Another group has committed nothing, as after a kill before the commit.
    with ended(stage.writer("b", SVC_WRITER_GROUP=f"{stage.settings.writer_group}-again")):
        await eventually(lambda: scalar(client, counted) == 6)
    client.close()


async def test_a_record_that_is_none_is_dead_lettered(stage: Stage, producer: AIOKafkaProducer) -> None:
    prefix = stage.settings.topic_prefix
    client = stage.client()
    writer = stage.writer()
    huge = Outcome("7", "2026-11-02T03:04:00.000Z", "js/1", "invalid", "schema", 2**70, "edge-1", 9)
    fine = msgspec.structs.replace(huge, count=4)
    with ended(writer):
        await producer.send_and_wait(f"{prefix}outcomes", b"{nothing", partition=0)
        await producer.send_and_wait(f"{prefix}outcomes", encode_json([huge, fine]), partition=0)
        await eventually(lambda: scalar(client, "SELECT sum(count) FROM outcomes FINAL") == 4)

        async def both() -> bool:
            return len(await stage.dead_letters()) == 2

        await eventually(both)
        assert [one.value for one in await stage.dead_letters()] == [b"{nothing", encode_json([huge, fine])]
    client.close()


async def test_projects_are_rows_with_what_was_decided_of_them(
    stage: Stage, producer: AIOKafkaProducer
) -> None:
    project = Project("7", "shop", "2026-01-02T03:04:05Z", retention_days=30, payload_retention_days=7)
    await producer.send_and_wait(f"{stage.settings.topic_prefix}projects", encode_project(project), key=b"7")
    client = stage.client()
    writer = stage.writer()
    with ended(writer):
        rows = "SELECT project_id, retention_days, payload_days FROM projects FINAL"
        await eventually(lambda: client.query(rows).result_rows == [(7, 30, 7)])
    client.close()
