"""Events that are sent again long after the dedup window: their ids have the time of the first sending."""

import time

from schemas.times import DAY_MS
from storage.client import Client
from tests.eventually import eventually
from tests.integration.conftest import PARTITIONS, Start
from tests.integration.processors import readback
from tests.integration.processors.feed import Feed, produce
from tests.integration.storage.read.events.test_stored_ids import insert


async def test_an_old_id_is_a_duplicate_where_its_event_is_stored(
    client: Client, clickhouse_database_url: str, kafka_bootstrap: str, prefix: str, start: Start
) -> None:
    feed = Feed(PARTITIONS, seed=31, now_ms=time.time_ns() // 1_000_000 - 40 * DAY_MS)
    chunk = feed.chunk(0, 20, repeats=0)
    stored = sorted(feed.ids)[::2]
    for project, number in stored:
        insert(client, project, number)
    start(SVC_CLICKHOUSE_URL=clickhouse_database_url)
    await produce(kafka_bootstrap, f"{prefix}events", [(0, chunk)] * 2)

    async def counted() -> bool:
        found = await readback.outcomes(kafka_bootstrap, f"{prefix}outcomes")
        return found == {"accepted": 40, "duplicate": 30}

    await eventually(counted, timeout=60)
    forwarded = readback.events_of(await readback.grouped_once(kafka_bootstrap, f"{prefix}grouped"))
    assert forwarded == dict.fromkeys(feed.ids - {*stored}, 1)
