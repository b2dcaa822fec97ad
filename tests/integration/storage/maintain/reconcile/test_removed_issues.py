"""Issues that were removed from their topic by mistake, and rebuilt or put back, are shown again."""

from collections import Counter

import pyarrow as pa
from aiokafka import AIOKafkaProducer
from msgspec.structs import replace

from broker.client import open_consumer, records_before
from schemas.ids import hex64
from schemas.issues import IssueRecord, encode_json
from schemas.topics import Topic
from storage.maintain.reconcile.resend import replay_issues
from storage.tables.record_rows import ISSUES, issue_row, table
from tests.integration.storage.grouped import Stage
from tests.integration.storage.write.test_writer_records import ISSUE


def rows_of(issue: IssueRecord, version: int, removed_at: int) -> pa.Table:
    """The stored rows of an issue that was removed at a version: its row and the mark."""
    mark = list(issue_row(replace(issue, version=removed_at)))
    mark[ISSUES.get_field_index("deleted")] = 1
    return table(ISSUES, [issue_row(replace(issue, version=version)), tuple(mark)])


async def test_a_rebuilt_issue_is_shown_though_its_mark_has_a_higher_version(stage: Stage) -> None:
    topic, other = f"{stage.settings.topic_prefix}issues", replace(ISSUE, id=hex64(256))
    client = stage.client()
    for issue in (ISSUE, other):
        client.insert_arrow("issues", rows_of(issue, 8, 9))
    rebuilt = replace(ISSUE, version=2, events=7)
    async with AIOKafkaProducer(bootstrap_servers=stage.settings.kafka_bootstrap, acks="all") as producer:
        await producer.send_and_wait(topic, encode_json(rebuilt), key=ISSUE.id.encode())
        await producer.send_and_wait(topic, None, key=other.id.encode())
    for _ in range(2):
        assert await replay_issues(stage.settings, client) == 1
        found = client.query("SELECT issue_id, version, events, deleted FROM issues FINAL ORDER BY issue_id")
        assert [tuple(row) for row in found.result_rows] == [(255, 2, 7, 0), (256, 9, 5, 1)]
    client.close()


async def test_a_removed_record_that_the_topic_still_has_is_put_back_and_shown(stage: Stage) -> None:
    topic = f"{stage.settings.topic_prefix}issues"
    client = stage.client()
    newest = replace(ISSUE, version=9, events=7)
    erased = replace(ISSUE, id=hex64(256), project_id="99")
    async with AIOKafkaProducer(bootstrap_servers=stage.settings.kafka_bootstrap, acks="all") as producer:
        for value in (encode_json(newest), encode_json(replace(ISSUE, version=8)), None):
            await producer.send_and_wait(topic, value, key=ISSUE.id.encode())
        for value in (encode_json(erased), None):
            await producer.send_and_wait(topic, value, key=erased.id.encode())
    client.command(
        "INSERT INTO erasures (project_id, id, kind, stage, version)"
        " VALUES (99, generateUUIDv4(), 'project', 'done', 1)"
    )
    client.insert_arrow("issues", rows_of(newest, 9, 9))
    for _ in range(2):
        assert await replay_issues(stage.settings, client) == 1
        found = client.query("SELECT issue_id, version, events, deleted FROM issues FINAL")
        assert [tuple(row) for row in found.result_rows] == [(255, 9, 7, 0)]
    async with open_consumer(stage.settings, Topic.ISSUES) as consumer:
        ends = await consumer.end_offsets(consumer.assignment())
        values = Counter([(record.key, record.value) async for record in records_before(consumer, ends)])
    assert values[ISSUE.id.encode(), encode_json(newest)] == 2
    assert values[erased.id.encode(), encode_json(erased)] == 1
    client.close()
