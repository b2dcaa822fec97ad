import asyncio
import re
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import RecordsToDelete
from aiokafka.structs import OffsetAndMetadata

from broker.client import open_admin
from local.clickhouse.local_clickhouse import LocalClickHouse
from schemas.chunks import decode_chunk, decode_grouped
from schemas.dead_letters import from_headers
from storage.client import scalar
from tests.eventually import eventually
from tests.integration.storage.grouped import (
    Stage,
    Writer,
    counts,
    ended,
    exactly,
    whole,
)


async def test_a_row_that_clickhouse_refuses_goes_to_the_dead_letters_and_the_rest_is_written(
    stage: Stage,
) -> None:
    client = stage.client()
    client.command("ALTER TABLE events ADD CONSTRAINT tame CHECK message NOT LIKE '%number 77'")
    await stage.produce(4, events=40)
    writer = stage.writer()
    with ended(writer):
        assert await whole(stage) == exactly(stage.total - 1)
        (dead_letter,) = await stage.dead_letters()
        about, headers = from_headers(dead_letter.headers)
        assert (about.topic, about.stage) == (stage.topic, "writer")
        assert "refused" in about.reason
        (event,) = decode_chunk(decode_grouped(dead_letter.value or b"").chunk)
        assert b"number 77" in event.payload
        await eventually(
            lambda: scalar(client, "SELECT sum(count) FROM outcomes WHERE outcome = 'deadLettered'") == 1
        )
        client.command("ALTER TABLE events DROP CONSTRAINT tame")
        producer = AIOKafkaProducer(bootstrap_servers=stage.settings.kafka_bootstrap)
        await producer.start()
        # Putting back is at least once, and a dead letter may be there twice.
        for _ in range(2):
            await producer.send_and_wait(
                stage.topic, dead_letter.value, partition=about.partition, headers=headers
            )
        assert await whole(stage) == exactly(stage.total)
        await producer.send_and_wait(
            stage.topic, dead_letter.value, partition=about.partition, headers=headers
        )
        await producer.stop()
        await stage.produce(4, events=40)
        assert await whole(stage) == exactly(stage.total)
        counted = "SELECT outcome, reason, sum(count) FROM outcomes FINAL GROUP BY 1, 2 ORDER BY 1"
        balanced = [("accepted", "putBack", 1), ("deadLettered", "refused", 1)]
        await eventually(lambda: client.query(counted).result_rows == balanced)
    client.close()


async def test_events_that_expired_before_the_writer_read_them_are_counted_dead_letters(stage: Stage) -> None:
    client, writer = stage.client(), stage.writer()
    counted = "SELECT outcome, reason, sum(count) FROM outcomes FINAL GROUP BY 1, 2 ORDER BY 1"
    async with AIOKafkaProducer(bootstrap_servers=stage.settings.kafka_bootstrap, acks="all") as producer:
        decided = [await stage.accept(producer, partition, 20) for partition in (0, 0, 0, 1)]
        async with open_admin(stage.settings) as admin:
            await admin.delete_records({TopicPartition(stage.events, 0): RecordsToDelete(before_offset=2)})
        for partition, value in zip((0, 0, 0, 1), decided, strict=True):
            await stage.send(producer, partition, value)
        with ended(writer):
            assert await whole(stage) == exactly(stage.total - 40)
            letters = await stage.dead_letters()
            assert [letter.value for letter in letters] == decided[:2]
            abouts = [from_headers(letter.headers) for letter in letters]
            assert {about.reason.partition(":")[0] for about, _ in abouts} == {"sourceLost"}
            await eventually(
                lambda: client.query(counted).result_rows == [("deadLettered", "sourceLost", 40)]
            )
            # Put back, they are lost again, and counted as before.
            for letter, (_, headers) in zip(letters, abouts, strict=True):
                await producer.send_and_wait(stage.topic, letter.value, partition=0, headers=headers)
            assert await whole(stage) == exactly(stage.total - 40)
            assert len(await stage.dead_letters()) == 4
            await stage.produce(1, events=10)
            assert await whole(stage) == exactly(stage.total - 40)
            assert client.query(counted).result_rows == [("deadLettered", "sourceLost", 40)]
    client.close()


async def test_a_group_that_is_reset_to_the_beginning_stores_nothing_twice(stage: Stage) -> None:
    await stage.produce(30, repeat=3)
    first = stage.writer()
    with ended(first):
        await whole(stage)
        first.stop()
    await reset(stage)
    await stage.produce(10)
    # A writer killed during its insert has a plan.
    second = stage.writer("1", SVC_WRITER_BLOCK_ROWS="20")
    with ended(second):
        await eventually(lambda: 'table="events"' in second.get("metrics")[1])
        second.kill()
    third = stage.writer("1")
    with ended(third):
        assert await whole(stage) == exactly(stage.total)


def lag(writer: Writer, topic: str) -> float:
    """Records of all partitions that the writer says it has not written."""
    shown = re.findall(r"svc_writer_lag_records\{(.*)\} ([0-9.e+]+)", writer.get("metrics")[1])
    return sum(float(count) for labels, count in shown if f'topic="{topic}"' in labels)


async def reset(stage: Stage) -> None:
    """Commit the beginning of each partition that has records."""
    async with AIOKafkaConsumer(
        bootstrap_servers=stage.settings.kafka_bootstrap,
        group_id=stage.settings.writer_group,
        enable_auto_commit=False,
    ) as consumer:
        places = [TopicPartition(stage.topic, p) for p in range(stage.settings.topic_partitions)]
        consumer.assign(places)
        ends = await consumer.end_offsets(places)

        async def committed() -> bool:
            # The group's last member must be gone before another may commit.
            try:
                await consumer.commit({p: OffsetAndMetadata(0, "") for p in places if ends[p]})
            except Exception:  # noqa: BLE001 - any refusal of the broker is waited out
                return False
            return True

        await eventually(committed)


@pytest.mark.slow
async def test_the_writer_says_why_it_waits_and_loses_nothing(
    kafka_bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    server = LocalClickHouse(tmp_path / "clickhouse").start()
    stage = Stage(kafka_bootstrap, server.url(), topic_prefix, tmp_path)
    await stage.prepare()
    server.stop()
    writer = stage.writer()
    try:
        with ended(writer):
            await stage.produce(5)
            await eventually(lambda: "doesn't answer" in str(writer.health("events").get("detail")))
            assert writer.get("readyz")[0] == 503
            assert writer.get("healthz")[0] == 200
            assert 'reason="unavailable"' in writer.get("metrics")[1]
            await asyncio.to_thread(server.start)
            client = stage.client()
            assert await whole(stage) == exactly(stage.total)
            await eventually(lambda: writer.get("readyz")[0] == 200)
            client.command("RENAME TABLE events TO events_away")
            await stage.produce(2)
            await eventually(lambda: "svc migrate" in str(writer.health("events").get("detail")))
            client.command("RENAME TABLE events_away TO events")
            assert await whole(stage) == exactly(stage.total)
            assert counts(client) == exactly(stage.total)
            client.close()
    finally:
        server.stop()
