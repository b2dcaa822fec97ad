"""The proof of `make chaos` on whole tables, and on wrong tables whose totals are right."""

from collections.abc import Iterator

import pytest

from bench.chaos.proof import Store, rollup_claims
from schemas.environment import load
from schemas.settings import MigrateSettings
from storage.tables.rollups import ROLLUPS
from tests.integration.conftest import MakeTables
from tests.servers import run_sql

EVENTS = """
    INSERT INTO ingest (project_id, fingerprint, ts, id, user_hash, release, tags, retention_days, payload_days)
    SELECT 1 + number % 2, 100 + number % 3, toDateTime64('2026-11-02 00:30:00', 3, 'UTC') + 3600 * (number % 30),
        number + 1, number % 7, 'shop@1', map('tier', toString(number % 2), 'n', toString(number % 5)), 90, 90
    FROM numbers(600)"""
KEYS = {rollup.table: f"keys of {rollup.table} that differ from events" for rollup in ROLLUPS}


@pytest.fixture
def url(clickhouse_database_url: str, make_tables: MakeTables) -> str:
    make_tables(clickhouse_database_url)
    run_sql_on(clickhouse_database_url, EVENTS)
    return clickhouse_database_url


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    store = Store(load(MigrateSettings, {"SVC_CLICKHOUSE_URL": url, "SVC_KAFKA_BOOTSTRAP": "unused:1"}))
    yield store
    store.close()


def run_sql_on(url: str, sql: str) -> None:
    """Run a statement in the database of the address, outside the code under test."""
    database = url.rsplit("/", 1)[1]
    for table in ("ingest", *KEYS):
        sql = sql.replace(f" {table} ", f" {database}.{table} ")
    run_sql(url, sql)


def refuted(store: Store) -> dict[str, int]:
    """The claims about rollups that do not hold, with their details."""
    return {claim.text: claim.found for claim in rollup_claims(store) if not claim.holds}


def test_rollups_that_the_tables_fed_are_equal_to_them(store: Store) -> None:
    assert refuted(store) == {}
    assert len([*rollup_claims(store)]) == 2 * len(ROLLUPS)


@pytest.mark.parametrize("table", KEYS)
def test_a_count_that_moved_from_one_key_to_another_is_found(store: Store, url: str, table: str) -> None:
    names = next(rollup.names for rollup in ROLLUPS if rollup.table == table)
    # Unsigned: the sum wraps to one less for the other.
    run_sql_on(
        url,
        f"""INSERT INTO {table} ({names}, n)
        SELECT {names}, if(rowNumberInAllBlocks() = 0, toUInt64(1), toUInt64(-1))
        FROM (SELECT DISTINCT {names} FROM {table} ORDER BY {names} LIMIT 2)""",
    )
    found = refuted(store)
    assert found.pop(KEYS[table]) == 2
    assert found == {}


def test_a_state_that_differs_from_the_events_is_found(store: Store, url: str) -> None:
    run_sql_on(
        url,
        """INSERT INTO issue_hour (project_id, hour, fingerprint, retention_days, n, users)
        SELECT project_id, hour, fingerprint, retention_days, 0, uniqCombinedState(12)(toUInt64(12345))
        FROM issue_hour GROUP BY project_id, hour, fingerprint, retention_days""",
    )
    assert set(refuted(store)) == {KEYS["issue_hour"]}
