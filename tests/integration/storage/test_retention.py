from collections.abc import Iterator
from datetime import date

import pytest

from storage.client import INSERT_SETTINGS, Client, open_client, scalar
from storage.migrate import migrate
from storage.retention import Partition, drop_expired

TODAY = date(2026, 11, 21)
EVENT = """INSERT INTO ingest (project_id, fingerprint, ts, id, tags, retention_days, payload_days)
    SELECT 1, 2, {ts:DateTime64(3, 'UTC')}, {id:UInt32}, map('k', 'v'), {days:UInt16}, {payload_days:UInt16}"""


@pytest.fixture
def client(clickhouse_database_url: str) -> Iterator[Client]:
    migrate(clickhouse_database_url)
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
    gone = drop_expired(client, TODAY)
    assert ids(client, "events") == [1, 3, 4]
    assert ids(client, "payloads") == [1, 4]
    for rollup in ("issue_day", "issue_day_er", "issue_hour", "project_hour", "tag_day"):
        assert scalar(client, f"SELECT sum(n) FROM {rollup}") == 3
    assert {partition.table for partition in gone} >= {"events", "payloads", "issue_day", "tag_day"}
    assert drop_expired(client, TODAY) == []


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
