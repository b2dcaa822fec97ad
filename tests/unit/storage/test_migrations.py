import re

from storage.tables.migrations.migrate import TABLE, migrations, statements
from storage.tables.migrations.replicated import WINDOW_SECONDS, on_cluster, replicated
from storage.tables.migrations.whole import whole_statements


def test_migrations_are_numbered_without_a_gap_and_say_why() -> None:
    found = migrations()
    assert [m.number for m in found] == list(range(1, len(found) + 1))
    assert all(m.why for m in found)


def test_statements_end_at_a_semicolon_that_ends_a_line() -> None:
    assert list(statements("-- why\n\nSELECT ';' AS a;\n\nSELECT 2;\n")) == ["SELECT ';' AS a", "SELECT 2"]


def test_a_statement_for_other_versions_is_left_out() -> None:
    sql = "-- why\nSELECT 1;\n\n-- from 26.2\nSELECT 2;\n\n-- below 26.2\nSELECT 3;\n"
    assert list(statements(sql, (26, 2))) == ["SELECT 1", "SELECT 2"]
    assert list(statements(sql, (25, 8))) == ["SELECT 1", "SELECT 3"]
    assert list(statements(sql)) == ["SELECT 1", "SELECT 2"]


def test_every_statement_can_be_repeated() -> None:
    for migration in migrations():
        for statement in statements(migration.sql):
            assert " IF NOT EXISTS " in statement, statement


def test_a_table_that_collapses_equal_rows_remembers_no_inserts() -> None:
    """A server that was killed may remember one without its rows, and drop the repeat."""
    created = [one for migration in migrations() for one in statements(migration.sql)]
    collapsing = [one for one in created if "ENGINE = ReplacingMergeTree" in one]
    assert len(collapsing) > 4
    assert not [one for one in collapsing if re.search(r"deduplication_window = [1-9]", one)]


SCHEMA = [TABLE.strip(), *(one for migration in migrations() for one in statements(migration.sql))]


def test_each_table_that_stores_is_replicated_with_the_same_order_and_windows() -> None:
    stored = [one for one in SCHEMA if re.search(r"^ENGINE = \w*MergeTree", one, re.MULTILINE)]
    assert len(stored) > 15
    for statement in stored:
        text = replicated(statement)
        engine = re.search(r"^ENGINE = (\w+)\('(.+)', '(\{\w+\})'(?:, (\w+))?\)$", text, re.MULTILINE)
        was = re.search(r"^ENGINE = (\w+)(?:\((\w+)\))?$", statement, re.MULTILINE)
        assert engine is not None
        assert was is not None
        assert engine.groups() == (
            f"Replicated{was[1]}",
            "/clickhouse/tables/{shard}/{database}/{table}",
            "{replica}",
            was[2],
        )
        # By default a replicated table drops rows that equal a block of the last hour.
        tokens = re.findall(r"non_replicated_deduplication_window = (\d+)", statement) or ["0"]
        assert re.findall(r"\breplicated_deduplication_window = (\d+)", text) == tokens
        assert re.findall(r"\breplicated_deduplication_window_seconds = (\d+)", text) == [str(WINDOW_SECONDS)]
        assert "non_replicated" not in text
        assert text.count("SETTINGS ") == 1


def test_tables_that_store_nothing_are_the_same_on_each_replica() -> None:
    others = [one for one in SCHEMA if not re.search(r"^ENGINE = \w*MergeTree", one, re.MULTILINE)]
    assert len(others) > 15
    assert [replicated(one) for one in others] == others


def test_each_statement_of_the_schema_names_the_cluster_once() -> None:
    for statement in (*SCHEMA, *whole_statements("svc", "events")):
        text = on_cluster(statement, "all")
        assert text.count(" ON CLUSTER 'all'") == (0 if statement.startswith("USE ") else 1), text
