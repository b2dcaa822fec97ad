"""Blocks of a large organisation: no statement grows with their projects, days and ids."""

import time
from collections.abc import Iterator
from datetime import date, timedelta

import pytest

from schemas.chunks import ChunkEvent, Grouping
from schemas.times import DAY_MS
from storage.client import Client, open_client, scalar
from storage.exactly_once.missing_rows import complete
from storage.exactly_once.repair_rollups import repair_rollups
from storage.tables.event_columns import EventColumns
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
        columns.add(event, Grouping(1, "v1", "frames", ()), 90, 30)
    done = complete(client, columns.table(), "many")
    assert done.added == {"events": rows, "payloads": rows}
    assert not done.refused
    assert scalar(client, "SELECT sum(n) FROM issue_day") == rows


def test_no_statement_of_a_completion_grows_with_its_projects_and_days(strict: Client) -> None:
    completed(strict, projects=300, days=2, rows=600)


@pytest.mark.slow
@pytest.mark.parametrize(("projects", "days"), [(5_000, 1), (3_000, 3), (BLOCK_ROWS, 1)])
def test_a_block_of_many_projects_is_completed(client: Client, projects: int, days: int) -> None:
    completed(client, projects, days, BLOCK_ROWS)


def test_rollups_of_a_week_of_many_projects_are_repaired(client: Client) -> None:
    monday = date(2026, 11, 16)
    days = {(FIRST_PROJECT + number, monday + timedelta(n)) for number in range(1_500) for n in range(7)}
    assert not any(repair_rollups(client, days).values())
