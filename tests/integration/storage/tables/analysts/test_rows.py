"""Row policies on the tables hold for every user of the views, whatever the query tries."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.clickhouse.local_clickhouse import LocalClickHouse
from storage.client import Client
from storage.tables.analyst_grants import Analyst, analyst_statements, role_statements, view_statements
from storage.tables.analyst_views import DEFINER, TABLES, VIEWS, create, own_views
from storage.tables.migrations.migrate import migrate, migrations, statements
from tests.integration.storage.tables.analysts.session import Refused, Session
from tests.integration.storage.tables.analysts.world import OTHER, SHOP, World


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalClickHouse]:
    server = LocalClickHouse(tmp_path_factory.mktemp("clickhouse"), analyst_projects=(OTHER,)).start()
    migrate(server.url())
    yield server
    server.stop()


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_shows_rows_of_the_allowed_project_alone(
    analyst: Session, database: Client, view: str
) -> None:
    assert analyst.rows(f"SELECT DISTINCT project_id FROM {view}") == [[OTHER]]
    assert analyst.rows(f"SELECT count() FROM {view} WHERE project_id = {SHOP}") == [[0]]


def test_our_own_processes_see_every_project(database: Client, world: World) -> None:
    for table in TABLES:
        seen = database.query(f"SELECT DISTINCT project_id FROM {table} ORDER BY project_id").result_rows
        assert [project for (project,) in seen] == [SHOP, OTHER], table
    assert database.command("SELECT count() FROM events") == len(world.events)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count() FROM analyst_events AS a JOIN analyst_events AS b ON a.event_id = b.event_id"
        f" WHERE b.project_id = {SHOP}",
        f"SELECT count() FROM (SELECT * FROM analyst_events) WHERE project_id = {SHOP}",
        f"SELECT count() FROM view(SELECT * FROM analyst_events WHERE project_id = {SHOP})",
        f"SELECT countIf(project_id = {SHOP}) FROM merge('svc', '^analyst_(events|tag_day)$')",
        f"SELECT countIf(project_id = {SHOP}) FROM analyst_events"
        " SETTINGS additional_table_filters = {'analyst_events': '1'}",
        f"SELECT count() FROM analyst_issues WHERE {SHOP} IN (SELECT project_id FROM analyst_events)",
        # Conditions that would fail on a hidden row must never see one.
        f"SELECT 0 * count() FROM analyst_events WHERE NOT throwIf(project_id = {SHOP} AND message != '')",
        "SELECT 0 * count() FROM analyst_events"
        f" WHERE NOT throwIf(project_id = {SHOP} AND has(tag_pairs, 'crash=true'))",
        f"SELECT 0 * count() FROM analyst_issues WHERE NOT throwIf(project_id = {SHOP} AND events > 0)",
        f"SELECT 0 * count() FROM analyst_issue_release_day WHERE NOT throwIf(project_id = {SHOP} AND events > 0)",
        f"SELECT 0 * count() FROM analyst_tag_day WHERE NOT throwIf(project_id = {SHOP} AND value != '')",
        f"SELECT 0 * count() FROM analyst_outcomes WHERE NOT throwIf(project_id = {SHOP} AND count > 0)",
        f"SELECT 0 * count() FROM analyst_changes WHERE NOT throwIf(project_id = {SHOP} AND by != '')",
        f"SELECT 0 * count() FROM analyst_issue_activity WHERE NOT throwIf(project_id = {SHOP} AND by != '')",
    ],
)
def test_no_query_comes_near_a_hidden_row(analyst: Session, sql: str) -> None:
    assert analyst.rows(sql) == [[0]]


def test_the_user_of_the_views_can_not_sign_in(server: LocalClickHouse) -> None:
    for password in ("", DEFINER, "analyst"):
        url = re.sub(r"//[^@]+@", f"//{DEFINER}:{password}@", server.url())
        with pytest.raises(Refused) as refused:
            Session(url).rows("SELECT 1")
        assert refused.value.code in {"194", "516"}


def test_views_that_were_recreated_are_handed_over_again(database: Client, analyst: Session) -> None:
    definers = (
        "SELECT DISTINCT definer FROM system.tables WHERE database = 'svc' AND startsWith(name, 'analyst_')"
    )
    database.command("ALTER TABLE analyst_events MODIFY SQL SECURITY DEFINER DEFINER = CURRENT_USER")
    own_views(database)
    assert list(database.query(definers).result_rows) == [(DEFINER,)]
    assert analyst.rows("SELECT DISTINCT project_id FROM analyst_events") == [[OTHER]]


def test_a_view_that_a_migration_replaces_shows_no_hidden_row_for_a_moment(
    database: Client, analyst: Session
) -> None:
    (views,) = [migration for migration in migrations() if migration.name == "analysts"]
    for statement in statements(views.sql):
        create(database, statement.replace("CREATE VIEW IF NOT EXISTS", "CREATE OR REPLACE VIEW", 1))
        for view in re.findall(r"VIEW IF NOT EXISTS (analyst_\w+)\n", statement):
            assert analyst.rows(f"SELECT DISTINCT project_id FROM {view}") == [[OTHER]]


def test_views_in_a_database_of_ones_own_read_as_their_definer(database: Client) -> None:
    # The statements for a server's restricted analyst, those that this server lets our user make.
    database.command("CREATE DATABASE test_bob ENGINE = Atomic")
    try:
        for statement in view_statements("test_bob", DEFINER):
            database.command(statement)
        for view in VIEWS:
            assert list(database.query(f"SELECT DISTINCT project_id FROM test_bob.{view}").result_rows) == [
                (OTHER,)
            ]
    finally:
        database.command("DROP DATABASE test_bob SYNC")


def test_statements_for_an_analyst_are_sql(database: Client) -> None:
    for analyst in (Analyst("ann", "0" * 64), Analyst("bob's `friend`", "0" * 64, (SHOP, OTHER))):
        for statement in (*role_statements("svc"), *analyst_statements("svc", analyst)):
            formatted = database.query(
                "SELECT formatQuery({sql:String})", parameters={"sql": statement}
            ).result_rows
            assert formatted


def test_documented_statements_for_our_own_users_are_sql(database: Client) -> None:
    page = (Path(__file__).parents[5] / "docs/operate/permissions.md").read_text(encoding="utf-8")
    block = page[page.index("CREATE USER IF NOT EXISTS svc_operator ") :].partition("```")[0]
    statements = [one for one in block.split(";\n") if one.strip()]
    assert len(statements) > 10
    for statement in statements:
        assert database.query("SELECT formatQuery({sql:String})", parameters={"sql": statement}).result_rows
