import secrets
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
import yaml
from click.testing import CliRunner

from cli.__main__ import svc
from schemas.issues import Outcome
from storage.clickhouse_diagnosis import FailureKind, diagnose
from storage.client import ClickHouseError, open_client, version
from storage.server_identity import recorded, server_id
from storage.tables.migrations.migrate import migrate, migrations, pending, statements
from storage.tables.record_rows import OUTCOMES, outcome_row, table
from tests.servers import run_sql


def test_migrating_again_changes_nothing(clickhouse_database_url: str) -> None:
    assert migrate(clickhouse_database_url) == migrations()
    assert migrate(clickhouse_database_url) == []


def test_a_migration_that_was_interrupted_is_completed(clickhouse_database_url: str) -> None:
    client = open_client(clickhouse_database_url)
    try:
        first = next(statements(migrations()[0].sql, (26, 2)))
        client.command(first)
        assert migrate(clickhouse_database_url) == migrations()
    finally:
        client.close()


def test_migrations_of_later_versions_stay_applied(clickhouse_database_url: str) -> None:
    migrate(clickhouse_database_url)
    client = open_client(clickhouse_database_url)
    try:
        number = len(migrations()) + 1
        client.insert("migrations", [[number, "later"]], column_names=["number", "name"])
        assert migrate(clickhouse_database_url) == pending(client) == []
    finally:
        client.close()


def test_a_later_version_that_adds_a_column_waits_for_it_and_this_one_goes_on(
    clickhouse_database_url: str,
) -> None:
    def outcomes(sequence: int) -> pa.Table:
        outcome = Outcome(
            "1", "2026-01-02T03:04:00.000Z", "js/1", "tooLarge", "", 5, "edge-1", sequence, "a text"
        )
        return table(OUTCOMES, [outcome_row(outcome)])

    later = outcomes(1).append_column("later", pa.array([7], "u1"))
    migrate(clickhouse_database_url)
    client = open_client(clickhouse_database_url)
    try:
        with pytest.raises(ClickHouseError) as refused:
            client.insert_arrow("outcomes", later)
        assert diagnose(refused.value).kind is FailureKind.WAIT
        client.command("ALTER TABLE outcomes ADD COLUMN later UInt8")
        client.insert_arrow("outcomes", later)
        client.insert_arrow("outcomes", outcomes(2))
        found = client.query("SELECT sequence, example, later FROM outcomes ORDER BY sequence").result_rows
        assert found == [(1, "a text", 7), (2, "a text", 0)]
    finally:
        client.close()


def environ(bootstrap: str, url: str, prefix: str) -> dict[str, str]:
    return {"SVC_KAFKA_BOOTSTRAP": bootstrap, "SVC_CLICKHOUSE_URL": url, "SVC_TOPIC_PREFIX": prefix}


@pytest.fixture
def missing_database_url(clickhouse_url: str) -> str:
    return urlsplit(clickhouse_url)._replace(path=f"/test_{secrets.token_hex(6)}").geturl()


def test_the_command_creates_database_and_topics_and_then_has_nothing_to_do(
    kafka_bootstrap: str, missing_database_url: str, clickhouse_url: str, topic_prefix: str, tmp_path: Path
) -> None:
    env = environ(kafka_bootstrap, missing_database_url, topic_prefix)
    runner = CliRunner()
    try:
        first = runner.invoke(svc, ["--data-dir", str(tmp_path), "migrate"], env=env)
        assert first.exit_code == 0, first.output
        assert f"created topic {topic_prefix}events" in first.output
        assert "applied 0001 events" in first.output
        again = runner.invoke(svc, ["--data-dir", str(tmp_path), "migrate"], env=env)
        assert again.output.strip() == "nothing to do: topics and schema are up to date"
        more = env | {"SVC_TOPIC_PARTITIONS": "9"}
        differing = runner.invoke(svc, ["--data-dir", str(tmp_path), "migrate"], env=more)
        assert f"left as it is: {topic_prefix}events has 4 partitions, expected are 9" in differing.output
    finally:
        run_sql(clickhouse_url, f"DROP DATABASE IF EXISTS {urlsplit(missing_database_url).path[1:]} SYNC")


def test_a_database_made_from_the_printed_statements_counts_as_migrated(
    clickhouse_database_url: str, tmp_path: Path
) -> None:
    printed = CliRunner().invoke(svc, ["--data-dir", str(tmp_path), "migrate", "--print"])
    client = open_client(clickhouse_database_url)
    try:
        for statement in statements(yaml.safe_load(printed.output)["sql"], version(client)):
            client.command(statement)
        assert pending(client) == []
        assert recorded(client)[0] == server_id(clickhouse_database_url)
    finally:
        client.close()
