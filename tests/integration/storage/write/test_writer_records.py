from collections.abc import AsyncIterator

import msgspec
import pytest
from aiokafka import AIOKafkaProducer

from control.change_log import change_of
from schemas.change_records import Author
from schemas.ids import hex64
from schemas.issues import Activity, IssueRecord, Outcome, encode_json
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
    async with AIOKafkaProducer(bootstrap_servers=stage.settings.kafka_bootstrap, acks="all") as producer:
        yield producer


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


async def test_changes_of_projects_and_of_issues_go_to_their_tables(
    stage: Stage, producer: AIOKafkaProducer
) -> None:
    topic, client = f"{stage.settings.topic_prefix}issue-activity", stage.client()
    change = change_of("tokenRevoked", Author("ann", "page"), 1_760_000_000_000, "7", after="{}")
    later = msgspec.structs.replace(change, at="2026-11-02T03:04:00.000Z")
    activity = Activity("a", hex64(255), "7", "created", "system", "2026-11-02T03:04:00.000Z")
    for record in (change, activity, later):
        await producer.send_and_wait(topic, encode_json(record), key=record.project_id.encode())

    def rows() -> list[tuple[str, ...]]:
        sql = "SELECT id, by, toString(at) FROM changes FINAL UNION ALL SELECT id, by, '' FROM issue_activity FINAL"
        return sorted(tuple(map(str, row)) for row in client.query(sql).result_rows)

    with ended(stage.writer()):
        wanted = [("a", "system", ""), (change.id, "ann", "2026-11-02 03:04:00.000")]
        await eventually(lambda: rows() == sorted(wanted))
    assert await stage.dead_letters() == []
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
