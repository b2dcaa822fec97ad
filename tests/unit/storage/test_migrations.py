import re

from storage.migrations.migrate import migrations, statements


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
            repeatable = statement.startswith(("ALTER TABLE", "CREATE OR REPLACE VIEW"))
            assert repeatable or " IF NOT EXISTS " in statement, statement


def test_a_table_that_collapses_equal_rows_remembers_no_inserts() -> None:
    """A server that was killed may remember one without its rows, and drop the repeat."""
    created = [one for migration in migrations() for one in statements(migration.sql)]
    collapsing = [one for one in created if "ENGINE = ReplacingMergeTree" in one]
    assert len(collapsing) > 4
    assert not [one for one in collapsing if re.search(r"deduplication_window = [1-9]", one)]
