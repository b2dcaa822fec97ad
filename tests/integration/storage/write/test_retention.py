import secrets
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime
from uuid import UUID

import pytest

from schemas.chunks import Grouping
from schemas.times import DAY_MS
from storage.client import INSERT_SETTINGS, Client, open_client, scalar
from storage.read.events.event_detail import GetProjectEvent
from storage.read.reader import Reader
from storage.tables.event_columns import EventColumns
from storage.write.housekeeping import Partition, drop_expired
from tests.eventually import eventually
from tests.integration.conftest import MakeTables
from tests.integration.storage.grouped import PROJECTS, chunk_event

TODAY = date(2026, 11, 21)
EVENT = """INSERT INTO ingest (project_id, fingerprint, ts, id, tags, retention_days, payload_days)
    SELECT 1, 2, {ts:DateTime64(3, 'UTC')}, {id:UInt32}, map('k', 'v'), {days:UInt16}, {payload_days:UInt16}"""


@pytest.fixture
def client(clickhouse_database_url: str, make_tables: MakeTables) -> Iterator[Client]:
    make_tables(clickhouse_database_url)
    client = open_client(clickhouse_database_url, settings=dict(INSERT_SETTINGS))
    yield client
    client.close()


def add(client: Client, number: int, day: str, days: int, payload_days: int) -> None:
    client.command(
        EVENT, parameters={"ts": f"{day} 12:00:00", "id": number, "days": days, "payload_days": payload_days}
    )


def ids(client: Client, table: str) -> list[int]:
    return sorted(int(row[0]) for row in client.query(f"SELECT id FROM {table}").result_rows)


def test_each_row_goes_with_its_retention_class_and_payloads_may_go_sooner(client: Client) -> None:
    add(client, 1, "2026-11-20", 7, 7)
    add(client, 2, "2026-11-01", 7, 7)
    add(client, 3, "2026-11-01", 90, 7)
    add(client, 4, "2026-11-01", 90, 90)
    dropped = drop_expired(client, TODAY)
    assert ids(client, "events") == [1, 3, 4]
    assert ids(client, "payloads") == [1, 4]
    for rollup in ("issue_day", "issue_day_er", "issue_hour", "project_hour", "tag_day"):
        assert scalar(client, f"SELECT sum(n) FROM {rollup}") == 3
    assert {partition.table for partition in dropped} >= {"events", "payloads", "issue_day", "tag_day"}
    assert drop_expired(client, TODAY) == []


async def test_payloads_go_sooner_their_disk_is_free_and_the_event_is_still_shown(
    client: Client, clickhouse_database_url: str
) -> None:
    now = time.time_ns() // 1_000_000
    columns, ids = EventColumns(), []
    for number in range(200):
        # Three weeks old: past a week of payloads, whatever the weekday.
        event = chunk_event(number, now_ms=now - 21 * DAY_MS, note=secrets.token_hex(2000))
        ids.append(str(UUID(bytes=event.id)))
        columns.add_row(event, Grouping(1, "v1", "frames", ()), 90, 7)
    client.insert_arrow("ingest", columns.table())
    assert payload_bytes(client) > 200 * 1500
    reader = Reader.open([clickhouse_database_url])
    try:
        before = await reader.read(GetProjectEvent(PROJECTS[0], ids[0]))
        assert before.event is not None
        dropped = drop_expired(client, datetime.now(UTC).date())
        assert {partition.table for partition in dropped} == {"payloads"}
        assert scalar(client, "SELECT count() FROM payloads") == 0
        await eventually(lambda: payload_bytes(client) == 0, 60)
        assert scalar(client, "SELECT count() FROM events") == 200
        after = await reader.read(GetProjectEvent(PROJECTS[0], ids[0]))
        assert after.event is None
        assert (after.event_id, after.time, after.sdk) == (before.event_id, before.time, before.sdk)
    finally:
        await reader.close()


def payload_bytes(client: Client) -> int:
    """Bytes on disk, those of parts included that wait for their removal."""
    sql = (
        "SELECT sum(if(rows = 0, 0, bytes_on_disk)) FROM system.parts"
        " WHERE table = 'payloads' AND database = currentDatabase()"
    )
    return int(scalar(client, sql))


@pytest.mark.parametrize(
    ("name", "expired"),
    [
        ("(7,'2026-11-02')", True),
        ("(7,'2026-11-09')", False),
        ("(90,'2026-08-10')", True),
        ("2026-11-01", False),
        ("2025-09-01", True),
    ],
)
def test_a_partition_goes_when_the_last_day_of_its_week_is_past(name: str, expired: bool) -> None:
    assert Partition("events", "x", name).expired(TODAY) is expired
