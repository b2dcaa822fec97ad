"""The schema of replicas: the local engine has no Keeper, so it only parses the statements."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from click.testing import CliRunner

from cli.__main__ import svc
from local.clickhouse.local_clickhouse import LocalClickHouse
from storage.client import open_client
from storage.replicas import ACTIVE, QUORUMS, TABLES, WAITING
from storage.server_identity import REPLICA_IDENTITY, record, recorded
from storage.tables.migrations.migrate import STORED, copy_schema, migrate, statements
from tests.servers import run_sql

pytestmark = pytest.mark.slow

THREE = " | ".join(f"http://svc:secret@ch{number}:8123/svc" for number in (1, 2, 3))


@pytest.mark.parametrize("more", [(), ("--on-cluster", "all")])
def test_every_printed_statement_is_parsed(
    clickhouse_url: str, tmp_path: Path, more: tuple[str, ...]
) -> None:
    given = {"SVC_CLICKHOUSE_SHARDS": THREE}
    printed = CliRunner().invoke(svc, ["--data-dir", str(tmp_path), "migrate", "--print", *more], env=given)
    assert printed.exit_code == 0, printed.output
    found = list(statements(yaml.safe_load(printed.stdout)["sql"]))
    assert len(found) > 40
    for statement in found:
        run_sql(clickhouse_url, f"EXPLAIN AST {statement}")
    stored = [one for one in found if "MergeTree" in one]
    assert all("Replicated" in one for one in stored)
    assert all(("ON CLUSTER 'all'" in one) == bool(more) for one in found if not one.startswith("INSERT"))


def test_statements_for_keeper_are_parsed(clickhouse_url: str) -> None:
    for statement in (WAITING.format(paths="'/a', '/b'"), "SYSTEM SYNC REPLICA events"):
        run_sql(clickhouse_url, f"EXPLAIN AST {statement}")


def test_queries_about_replicas_are_empty_without_replicas(clickhouse_database_url: str) -> None:
    migrate(clickhouse_database_url)
    client = open_client(clickhouse_database_url)
    try:
        assert client.query(TABLES).result_rows == []
        assert client.query(REPLICA_IDENTITY).result_rows == []
        assert client.query(QUORUMS, parameters={"tables": ["events"]}).result_rows == []
        assert client.query(ACTIVE, parameters={"name": "ch1"}).result_rows == [(0,)]
    finally:
        client.close()


def test_the_last_record_counts_whatever_the_clock_says(clickhouse_database_url: str) -> None:
    migrate(clickhouse_database_url)
    client = open_client(clickhouse_database_url)
    try:
        names = ["number", "name", "applied", "server", "shard"]
        client.insert(
            "migrations", [[5, "analysts", "2100-01-01 00:00:00", "ahead", "1/1"]], column_names=names
        )
        assert recorded(client) == ("ahead", "1/1")
        record(client, "behind", "1/1")
        assert recorded(client) == ("behind", "1/1")
    finally:
        client.close()


def test_a_new_replica_has_the_tables_of_the_first_as_they_are_now(
    clickhouse_database_url: str, tmp_path: Path
) -> None:
    migrate(clickhouse_database_url)
    first = open_client(clickhouse_database_url)
    other = LocalClickHouse(tmp_path / "other").start(120)
    try:
        # A later version's change, which no migration of this one makes.
        first.command("ALTER TABLE outcomes ADD COLUMN later UInt8")
        url = urlsplit(other.url())._replace(path=urlsplit(clickhouse_database_url).path).geturl()
        for _ in range(2):
            copy_schema(clickhouse_database_url, url)
        replica = open_client(url)
        assert replica.query(STORED).result_rows == first.query(STORED).result_rows
        names = "SELECT name, engine FROM system.tables WHERE database = currentDatabase() ORDER BY name"
        assert replica.query(names).result_rows == first.query(names).result_rows
        replica.close()
    finally:
        first.close()
        other.stop()
