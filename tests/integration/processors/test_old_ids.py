"""Events that are sent again long after the dedup window.

Their records carry old timestamps, and their ids the time of these.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from local.clickhouse.server import LocalClickHouse
from processors.grouper.log_clock import DAY_RECORDS
from schemas.chunks import encode_chunk
from schemas.times import DAY_MS
from storage.client import Client, open_client
from storage.tables.migrations.migrate import migrate
from tests.eventually import eventually
from tests.integration.conftest import PARTITIONS, Start
from tests.integration.processors import readback
from tests.integration.processors.feed import HEADERS, Feed
from tests.integration.processors.test_exactness import RECORDS, assert_exact, processed
from tests.integration.storage.grouped import Writer, ended

WINDOW = 7
FIRST = 89
"""Days ago that the events were sent first."""


@pytest.fixture
async def clickhouse(tmp_path: Path) -> AsyncIterator[LocalClickHouse]:
    """A server of the test's own, that may be stopped."""
    server = LocalClickHouse(tmp_path / "clickhouse")
    await asyncio.to_thread(server.start, 120)
    yield server
    await asyncio.to_thread(server.stop)


def database(server: LocalClickHouse) -> str:
    return server.url().rpartition("/")[0] + "/test_old_ids"


class AgedLog:
    """A partition of `events` whose records are as old as they say."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self.bootstrap = bootstrap
        self.topic = f"{prefix}events"
        self.now_ms = time.time_ns() // 1_000_000
        self.records = 0

    async def prepare(self) -> None:
        """Let producers name the time of their records."""
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
        await admin.start()
        configs = {"message.timestamp.type": "CreateTime", "retention.ms": "-1"}
        await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, self.topic, configs)])
        await admin.close()

    async def append(self, values: Iterable[bytes], days_ago: int) -> None:
        """Append records of a day."""
        producer = AIOKafkaProducer(bootstrap_servers=self.bootstrap, linger_ms=5, max_batch_size=1 << 20)
        await producer.start()
        at = self.now_ms - days_ago * DAY_MS
        sent = [
            await producer.send(self.topic, value, partition=0, headers=HEADERS, timestamp_ms=at)
            for value in values
        ]
        for one in sent:
            await one
        self.records += len(sent)
        await producer.stop()

    async def pass_days(self, first: int, last: int) -> None:
        """Enough records without events for each day to count."""
        for days_ago in range(first, last, -1):
            await self.append([encode_chunk([])] * DAY_RECORDS, days_ago)


def rows(client: Client) -> int:
    return int(client.query("SELECT count() FROM events").result_rows[0][0])


async def test_an_event_that_is_sent_again_after_8_30_and_89_days_changes_nothing(
    clickhouse: LocalClickHouse, kafka_bootstrap: str, prefix: str, start: Start, tmp_path: Path
) -> None:
    url = database(clickhouse)
    await asyncio.to_thread(migrate, url)
    log = AgedLog(kafka_bootstrap, prefix)
    await log.prepare()
    feed = Feed(PARTITIONS, seed=31, now_ms=log.now_ms - FIRST * DAY_MS)
    chunks = [feed.chunk(0, 20, repeats=0.1) for _ in range(10)]
    environ = {
        "SVC_KAFKA_BOOTSTRAP": kafka_bootstrap,
        "SVC_CLICKHOUSE_URL": url,
        "SVC_TOPIC_PREFIX": prefix,
        "SVC_WRITER_GROUP": f"{prefix}writer",
        "SVC_KAFKA_SESSION_SECONDS": "3",
    }
    worker = start("a", SVC_CLICKHOUSE_URL=url)

    async def send_again(days_ago: int) -> None:
        await log.append(chunks, days_ago)
        feed.sent += 200

    with ended(Writer(environ, tmp_path / "writer.log")):
        client = open_client(url)
        await log.append(chunks, FIRST)
        await eventually(lambda: rows(client) == len(feed.ids), timeout=120)
        await log.pass_days(FIRST, FIRST - WINDOW - 1)
        await send_again(FIRST - 8)
        await eventually(lambda: processed(worker, log.records), timeout=120)
        client.close()

        await asyncio.to_thread(clickhouse.stop)
        await send_again(FIRST - 30)
        await eventually(lambda: "old ids wait to be looked up" in worker.log.read_text())
        assert not worker.ready()
        assert worker.metric(RECORDS) < log.records
        other = start("b", SVC_CLICKHOUSE_URL=url)
        await eventually(lambda: other.metric("svc_processors_rebalances_total") > 0)
        waiting = "old ids wait to be looked up"
        logs = len(worker.log.read_text()), len(other.log.read_text())
        await eventually(
            lambda: waiting in worker.log.read_text()[logs[0] :] + other.log.read_text()[logs[1] :],
            timeout=60,
        )
        assert [worker.stop(), other.stop()] == [0, 0]
        worker.start()
        other.start()
        await asyncio.to_thread(clickhouse.start, 120)
        await eventually(lambda: worker.ready() and other.ready())

        client = open_client(url)
        erased = next(iter(feed.ids))
        number = int.from_bytes(erased[1], "big")
        client.command(f"INSERT INTO erased_events VALUES ({erased[0]}, toUInt128('{number}'), today())")
        client.command(f"DELETE FROM events WHERE id = toUInt128('{number}')")
        await send_again(0)

        async def counted() -> bool:
            found = await readback.outcomes(kafka_bootstrap, f"{prefix}outcomes")
            return found["accepted"] == feed.sent

        await eventually(counted, timeout=120)
        await assert_exact(kafka_bootstrap, prefix, feed)
        await eventually(lambda: rows(client) == len(feed.ids) - 1)
        assert worker.running
        assert "stops" not in worker.log.read_text()
        client.close()
