"""Sizes of a large organisation: no statement grows with projects, days and ids."""

import time
from collections.abc import Iterator
from datetime import date, timedelta

import pytest
from prometheus_client import CollectorRegistry

from schemas.chunks import ChunkEvent, Grouping
from schemas.health import Health
from schemas.times import DAY_MS
from storage.client import INSERT_SETTINGS, Client, open_client, scalar
from storage.exactly_once.missing_rows import complete
from storage.exactly_once.repair_rollups import repair_rollups
from storage.tables.event_columns import EventColumns
from storage.write.inserter import Inserter, WrongStatement
from storage.write.records_stage import delete_issues
from storage.write.writer_metrics import WriterMetrics
from tests.integration.storage.grouped import event_json

BLOCK_ROWS = 20_000
"""The writer's largest block."""
SHORT = 6_000
"""Bytes of a statement that any of a fixed text has room in."""
FIRST_PROJECT = 4_000_000_000


@pytest.fixture
def strict(client: Client, clickhouse_database_url: str) -> Iterator[Client]:
    """A client of the same database that may send short statements only."""
    strict = open_client(clickhouse_database_url, settings={"max_query_size": SHORT})
    yield strict
    strict.close()


def completed(client: Client, projects: int, days: int, rows: int) -> None:
    """Complete a block of so many projects and days, of which no row is stored."""
    columns, noon = EventColumns(), time.time_ns() // 1_000_000 // DAY_MS * DAY_MS - DAY_MS // 2
    for number in range(rows):
        sent = noon - number // projects % days * DAY_MS
        project, identity = FIRST_PROJECT + number % projects, number.to_bytes(16, "big")
        event = ChunkEvent(project, identity, sent, "js/1", event_json(number, sent))
        columns.add_row(event, Grouping(1, "v1", "frames", ()), 90, 30)
    done = complete(client, columns.table(), "many")
    assert done.added == {"events": rows, "payloads": rows}
    assert not done.refused
    ours = f"SELECT sum(n) FROM issue_day WHERE project_id >= {FIRST_PROJECT}"
    assert scalar(client, ours) == rows


def test_no_statement_of_a_completion_grows_with_its_projects_and_days(strict: Client) -> None:
    completed(strict, projects=300, days=2, rows=600)


@pytest.mark.slow
@pytest.mark.parametrize(("projects", "days"), [(5_000, 1), (3_000, 3), (BLOCK_ROWS, 1)])
def test_a_block_of_many_projects_is_completed(client: Client, projects: int, days: int) -> None:
    completed(client, projects, days, BLOCK_ROWS)


@pytest.mark.slow
def test_a_block_of_many_retentions_is_inserted(client: Client) -> None:
    columns, now, days = EventColumns(), time.time_ns() // 1_000_000, 2_100
    for number in range(days):
        event = ChunkEvent(
            FIRST_PROJECT + number, number.to_bytes(16, "big"), now, "js/1", event_json(number, now)
        )
        columns.add_row(event, Grouping(1, "v1", "frames", ()), number + 1, 30)
    client.insert_arrow("ingest", columns.table(), settings=dict(INSERT_SETTINGS))
    assert scalar(client, f"SELECT count() FROM events WHERE project_id >= {FIRST_PROJECT}") == days


def test_rollups_of_a_week_of_many_projects_are_repaired(client: Client) -> None:
    monday = date(2026, 11, 16)
    days = {(FIRST_PROJECT + number, monday + timedelta(n)) for number in range(1_500) for n in range(7)}
    assert not any(repair_rollups(client, days).values())


def test_as_many_issues_are_removed_as_a_batch_has_records(client: Client) -> None:
    client.command("INSERT INTO issues (project_id, issue_id) SELECT 7, number FROM numbers(3)")
    delete_issues(client, [1, *range(1 << 63, (1 << 63) + BLOCK_ROWS)])
    assert client.query("SELECT issue_id FROM issues FINAL WHERE deleted = 0 ORDER BY ALL").result_rows == [
        (0,),
        (2,),
    ]


async def test_a_statement_that_can_never_run_is_tried_once_and_said(clickhouse_database_url: str) -> None:
    health, tries = Health(), 0

    def work(client: Client) -> None:
        nonlocal tries
        tries += 1
        client.query("SELECT (")

    inserter = Inserter(clickhouse_database_url, "events", health, WriterMetrics(CollectorRegistry()))
    with pytest.raises(WrongStatement, match="Syntax error"):
        await inserter.run(work)
    inserter.close()
    assert tries == 1
    assert "Syntax error" in health.parts()["events"].detail
