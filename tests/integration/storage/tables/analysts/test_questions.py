"""Analysts: the views give the same figures as a count by hand.

The document's queries run as Grafana would run them, and no other statements run.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.clickhouse.local_clickhouse import LocalClickHouse
from schemas.times import DAY_MS
from storage.client import Client, open_client, scalar
from storage.tables.analyst_views import TABLES, VIEWS
from storage.tables.migrations.migrate import migrate
from tests.integration.storage.tables.analysts.answers import ANSWERS, Row, Selection
from tests.integration.storage.tables.analysts.session import Refused, Session, expanded
from tests.integration.storage.tables.analysts.world import NOW_MS, OTHER, SHOP, World

DOCS = Path(__file__).parents[5] / "docs"
PAGE = (DOCS / "analyze" / "questions.md").read_text(encoding="utf-8")
QUESTIONS = re.findall(r"^### (\d+)\. ([^\n]+)\n.*?^```sql\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
LAST_MS = NOW_MS // 1000 * 1000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalClickHouse]:
    server = LocalClickHouse(
        tmp_path_factory.mktemp("clickhouse"), analyst_password="it's%40-secret:"
    ).start()
    migrate(server.url())
    yield server
    server.stop()


@pytest.fixture(scope="module")
def selection(world: World) -> Selection:
    """A range that cuts days and hours, and the issue with most events, which is a merged one."""
    issue = max(world.shown(SHOP), key=lambda shown: shown.events)
    return Selection(start=LAST_MS - 17 * DAY_MS, end=LAST_MS - DAY_MS // 3, issue=issue.id, budget=30)


def close(got: list[Row], wanted: list[Row]) -> bool:
    """Equal, except for the last digit of values that both rounded."""
    return [[pytest.approx(v, abs=0.06) if isinstance(v, float) else v for v in row] for row in wanted] == got


def test_the_document_has_fifteen_questions() -> None:
    assert [int(number) for number, _, _ in QUESTIONS] == list(range(1, 16))
    assert len(ANSWERS) == 15


@pytest.mark.parametrize("number", range(15), ids=[title for _, title, _ in QUESTIONS])
def test_a_documented_query_equals_a_count_by_hand(
    analyst: Session, world: World, selection: Selection, number: int
) -> None:
    variables = {"project": SHOP, "issue": selection.issue, "budget": selection.budget}
    got = analyst.rows(expanded(QUESTIONS[number][2], selection.start, selection.end, variables))
    wanted = ANSWERS[number](world, selection)
    assert len(wanted) > 1, "a question without rows tests nothing"
    assert close(got, wanted), (got, wanted)


def test_views_count_like_the_lists(analyst: Session, world: World) -> None:
    for project in (SHOP, OTHER):
        many = len(world.of(project))
        tags = sum(len(event.tags) for event in world.of(project))
        assert analyst.rows(
            f"SELECT count(), uniqExact(event_id) FROM analyst_events WHERE project_id = {project}"
        ) == [[many, many]]
        for view in ("issue_day", "issue_release_day", "release_day", "issue_hour", "project_hour"):
            sums = analyst.rows(f"SELECT sum(events) FROM analyst_{view} WHERE project_id = {project}")
            assert sums == [[many]], view
        assert analyst.rows(f"SELECT sum(events) FROM analyst_tag_day WHERE project_id = {project}") == [
            [tags]
        ]
        assert analyst.rows(
            f"SELECT count(), sum(events) FROM analyst_issues WHERE project_id = {project}"
        ) == [[len(world.shown(project)), many]]
    assert analyst.rows("SELECT count() FROM analyst_issue_activity") == [[len(world.activity)]]
    assert analyst.rows("SELECT project_id, kind, by FROM analyst_changes ORDER BY project_id") == [
        [project, "projectChanged", "ann"] for project in (SHOP, OTHER)
    ]
    assert analyst.rows("SELECT sum(count) FROM analyst_outcomes") == [[sum(o.count for o in world.outcomes)]]
    assert analyst.rows(
        "SELECT project_id, name, retention_days, payload_days FROM analyst_projects ORDER BY project_id"
    ) == [[SHOP, "shop", 90, 90], [OTHER, "other", 30, 7]]


def test_an_events_columns_have_the_sent_values(analyst: Session, world: World) -> None:
    by_id = {event.id: event for event in world.events}
    rows = analyst.rows(
        "SELECT event_id, project_id, issue_id, fingerprint,"
        " toUnixTimestamp64Milli(ts), toUnixTimestamp64Milli(received),"
        " release, kind, sdk, user_id, error_type, message, tags FROM analyst_events"
    )
    assert len(rows) == len(by_id)
    for row in rows:
        e = by_id[row[0]]
        wanted = [e.id, e.project, world.issue(e), f"{e.fingerprint:016x}", e.ts, e.received, e.release]
        assert row == [*wanted, e.kind, e.sdk, e.user, e.error_type, e.message, e.tags]


@pytest.mark.parametrize("view", VIEWS)
def test_a_session_with_other_rules_for_joins_gets_the_same_rows(analyst: Session, view: str) -> None:
    sql = f"SELECT cityHash64(*) AS row FROM {view} ORDER BY row"
    assert analyst.rows(sql) == analyst.rows(sql, join_use_nulls=1)


def test_every_column_has_a_comment(database: Client) -> None:
    silent = database.query(
        "SELECT table, name FROM system.columns"
        " WHERE database = 'svc' AND comment = '' AND table IN {tables:Array(String)}",
        parameters={"tables": [*VIEWS, *TABLES, "payloads"]},
    )
    assert list(silent.result_rows) == []
    views = (
        "SELECT count() FROM system.tables"
        " WHERE database = 'svc' AND startsWith(name, 'analyst_') AND comment != ''"
    )
    assert scalar(database, views) == len(VIEWS)


def test_an_analyst_finds_the_views_and_nothing_else(analyst: Session, server: LocalClickHouse) -> None:
    assert analyst.rows("SHOW TABLES FROM svc") == [[view] for view in sorted(VIEWS)]
    assert analyst.rows("SHOW DATABASES") == [["svc"]]


@pytest.mark.parametrize("view", [view for view in VIEWS if not view.endswith("_states")])
def test_every_column_of_a_view_is_read_by_other_clients(server: LocalClickHouse, view: str) -> None:
    client = open_client(server.url("analyst"))
    try:
        rows = client.query(f"SELECT * FROM {view}").result_rows
        assert rows
        assert len(client.query_df(f"SELECT * FROM {view}")) == len(rows)
    finally:
        client.close()


@pytest.mark.parametrize("view", [view for view in VIEWS if view.endswith("_states")])
def test_only_the_users_of_a_view_of_states_are_not_plain(analyst: Session, view: str) -> None:
    plain = view.removesuffix("_states")
    sql = "SELECT * REPLACE (finalizeAggregation(users) AS users) FROM {} ORDER BY ALL"
    assert analyst.rows(sql.format(view)) == analyst.rows(f"SELECT * FROM {plain} ORDER BY ALL")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT displayName(), version(), revision(), timezone()",
        "SELECT version()",
        "SELECT database, name FROM system.tables ORDER BY database, name",
        "SELECT database, table, name, type, comment FROM system.columns"
        " WHERE (database, table) IN (('svc', 'analyst_events'))",
        "SELECT name, type, table FROM system.columns WHERE database IN ('svc')",
        'DESC TABLE "svc"."analyst_events"',
        'DESCRIBE TABLE "svc"."analyst_issues"',
        'SHOW TABLES FROM "svc"',
        "SELECT name, is_aggregate, case_insensitive, alias_to, origin FROM system.functions LIMIT 10000",
        'SELECT DISTINCT arrayJoin(tags.keys) AS keys FROM "svc"."analyst_events" LIMIT 1000',
        "SELECT DISTINCT environment FROM svc.analyst_events SETTINGS max_execution_time=10",
        "SELECT count() FROM analyst_events"
        " SETTINGS additional_table_filters = {'analyst_events': 'environment = \\'prod\\''}",
    ],
)
def test_the_queries_of_grafanas_plugin_are_answered(analyst: Session, sql: str) -> None:
    assert analyst.rows(sql)


@pytest.mark.parametrize(
    ("sql", "codes"),
    [
        *[
            (f"SELECT count() FROM svc.{table}", "497")
            for table in ("events", "payloads", "issues", "issue_of")
        ],
        *[(f"SELECT count() FROM svc.{table}", "497") for table in ("ingest", "projects", "migrations")],
        ("SELECT * FROM merge('svc', '^events$')", "36 60 497 636"),
        ("SELECT * FROM s3('http://127.0.0.1:1/bucket/a', 'CSV', 'x String')", "497"),
        ("SELECT * FROM remote('127.0.0.1', 'svc', 'events')", "497"),
        ("SELECT * FROM mysql('127.0.0.1:1', 'a', 'b', 'c', 'd')", "497"),
        ("SELECT * FROM postgresql('127.0.0.1:1', 'a', 'b', 'c', 'd')", "497"),
        ("SELECT * FROM sqlite('/tmp/a', 'b')", "497"),
        ("SELECT * FROM mergeTreeIndex('svc', 'events')", "497"),
        ("INSERT INTO svc.analyst_events (project_id) VALUES (1)", "48 164 497"),
        ("CREATE TABLE svc.mine (x Int8) ENGINE = Memory", "164 497"),
        ("CREATE TEMPORARY TABLE mine (x Int8)", "164 497"),
        ("ALTER TABLE svc.analyst_events MODIFY SQL SECURITY INVOKER", "164 497"),
        ("DROP VIEW svc.analyst_events", "164 497"),
        ("SET readonly = 0", "164"),
        ("SELECT 1 SETTINGS max_execution_time = 91", "452"),
        ("SELECT 1 SETTINGS max_execution_time = 0", "452"),
        ("SELECT 1 SETTINGS max_memory_usage = 0", "452"),
        ("SELECT 1 SETTINGS max_memory_usage_for_user = 0", "452"),
        ("SELECT 1 SETTINGS max_rows_to_read = 0", "452"),
        ("SELECT 1 SETTINGS max_result_rows = 2000000", "452"),
        ("SELECT 1 SETTINGS max_threads = 64", "452"),
        ("SELECT 1 SETTINGS allow_ddl = 1", "164 392 452"),
        ("SELECT sleepEachRow(1) FROM analyst_events LIMIT 5 SETTINGS max_execution_time = 1", "159 160"),
        ("SELECT number FROM numbers(2000000)", "396"),
        ("SELECT message FROM analyst_events SETTINGS max_rows_to_read = 1", "158"),
    ],
)
def test_anything_else_is_refused(analyst: Session, sql: str, codes: str) -> None:
    with pytest.raises(Refused) as refused:
        analyst.rows(sql)
    assert refused.value.code in codes.split(), refused.value


OPEN_TO_ALL = {
    *("aggregate_function_combinators", "collations", "columns", "completions", "contributors", "current_roles"),
    *("data_type_families", "database_engines", "databases", "dictionary_layouts", "disk_types", "enabled_roles"),
    *("formats", "functions", "licenses", "one", "privileges", "quota_usage", "settings", "table_engines"),
    *("table_functions", "tables", "time_zones", "user_query_log"),
}  # fmt: skip
"""System tables that ClickHouse shows to everybody: facts about the server and about the asking user."""


def test_system_tables_tell_nothing_of_others(
    analyst: Session, database: Client, server: LocalClickHouse
) -> None:
    Session(server.url()).ask("SELECT 'a question of another user'")
    Session(server.url()).ask("SYSTEM FLUSH LOGS")
    readable = set()
    for (name,) in database.query("SELECT name FROM system.tables WHERE database = 'system'").result_rows:
        try:
            analyst.ask(f"SELECT * FROM system.`{name}` LIMIT 1 FORMAT Null")
        except Refused as refused:
            assert refused.code == "497", (name, refused)  # noqa: PT017
        else:
            readable.add(name)
    assert readable <= OPEN_TO_ALL
    for table in ("tables", "columns"):
        named = analyst.rows(
            f"SELECT DISTINCT {'name' if table == 'tables' else 'table'} FROM system.{table} WHERE database = 'svc'"
        )
        assert {name for (name,) in named} == set(VIEWS)
    words = "SELECT word FROM system.completions WHERE word IN ('payloads', 'user_hash', 'issue_day_er', 'migrations')"
    assert analyst.rows(words) == []
    assert analyst.rows(
        "SELECT count() FROM system.user_query_log WHERE query LIKE '%another user%' AND user != 'analyst'"
    ) == [[0]]


@pytest.mark.parametrize(
    ("condition", "indexes"),
    [
        ("ts >= now64(3, 'UTC') - INTERVAL 60 DAY", {"Min-Max", "Partition", "PrimaryKey"}),
        ("has(tag_pairs, 'crash=true')", {"PrimaryKey", "by_tag"}),
    ],
)
def test_conditions_reach_the_tables_indexes_through_the_view(
    database: Client, world: World, condition: str, indexes: set[str]
) -> None:
    sql = f"EXPLAIN indexes = 1, json = 1 SELECT count() FROM analyst_events WHERE project_id = {SHOP} AND {condition}"
    reads = list(_reads(json.loads(str(database.query(sql).result_rows[0][0]))))
    (events,) = [read for read in reads if read["Description"].endswith(".events")]
    found = {index.get("Name") or index["Type"] for index in events["Indexes"]}
    keys = {key for index in events["Indexes"] if index["Type"] == "PrimaryKey" for key in index["Keys"]}
    assert indexes <= found
    assert "project_id" in keys
    # The issues to join are those of the project, too.
    (issues,) = [read for read in reads if read["Description"].endswith(".issues")]
    assert [index["Keys"] for index in issues["Indexes"] if index["Type"] == "PrimaryKey"] == [["project_id"]]


def _reads(plan: Any) -> Iterator[dict[str, Any]]:
    if isinstance(plan, list):
        for part in plan:
            yield from _reads(part)
    elif isinstance(plan, dict):
        if plan.get("Node Type") == "ReadFromMergeTree":
            yield plan
        for part in plan.values():
            yield from _reads(part)
