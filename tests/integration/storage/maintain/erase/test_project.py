import pytest

from storage.client import Client, scalar
from storage.exactly_once.missing_rows import complete
from storage.maintain.erase import erase_project as whole
from storage.maintain.erase import ledger
from storage.shards import alone
from tests.integration.storage.grouped import insert
from tests.integration.storage.maintain.erase.rows import PROJECT, block, erase, exact


def test_a_project_is_gone_from_every_table_and_the_others_stay(client: Client) -> None:
    rows = block()
    insert(client, rows, "t")
    erase(client)
    for table, column in (("issues", "issue_id"), ("issue_activity", "issue_id"), ("outcomes", "sequence")):
        client.command(
            f"INSERT INTO {table} (project_id, {column}) SELECT arrayJoin([7, 8]), number FROM numbers(50)"
        )
    client.command("INSERT INTO projects (project_id, name, version) VALUES (7, 'a', 1), (8, 'b', 1)")
    tables = [
        str(row[0])
        for row in client.query(
            "SELECT DISTINCT table FROM system.columns WHERE database = currentDatabase() AND name = 'project_id'"
            " AND table IN"
            " (SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree')"
        ).result_rows
    ]
    kept = {table: scalar(client, f"SELECT count() FROM {table} WHERE project_id = 7") for table in tables}
    finished: list[bool] = []
    report = whole.erase_project(
        alone(client), PROJECT, "tester", lambda: finished.append(True), lambda _: None
    )
    assert finished == [True]
    assert {"events", "payloads", "issues", "outcomes", "erased_events", "tag_day"} <= set(tables)
    left = {table: scalar(client, f"SELECT count() FROM {table} WHERE project_id = 8") for table in tables}
    assert {table for table, count in left.items() if count} == {"erasures", "projects"}
    assert client.query("SELECT name, deleted FROM projects WHERE project_id = 8").result_rows == [("", 1)]
    assert kept == {
        table: scalar(client, f"SELECT count() FROM {table} WHERE project_id = 7") for table in tables
    }
    assert {one.table for one in report.tables if one.rows_before and not one.rows_after} >= {
        "events",
        "issues",
    }
    assert complete(client, rows, "repair/1").rows == {}
    exact(client)


def test_changes_stay_without_what_they_say_also_if_they_are_written_again(client: Client) -> None:
    def write() -> None:
        client.command("""INSERT INTO changes (project_id, id, kind, by, before, after)
            SELECT arrayJoin([7, 8]), 'a', 'rulesChanged', 'ann', 'old', 'new'""")

    write()
    whole.erase_project(alone(client), PROJECT, "tester", lambda: None, lambda _: None)
    assert whole.preview(alone(client), PROJECT).rows == 0
    write()
    rows = "SELECT project_id, kind, by, before, after FROM changes FINAL ORDER BY project_id"
    assert client.query(rows).result_rows == [
        (7, "rulesChanged", "ann", "old", "new"),
        (8, "rulesChanged", "ann", "", ""),
    ]


def test_a_project_erased_again_has_nothing_left(client: Client) -> None:
    insert(client, block(), "t")
    first = whole.erase_project(alone(client), PROJECT, "tester", lambda: None, lambda _: None)
    again = whole.erase_project(alone(client), PROJECT, "tester", lambda: None, lambda _: None)
    assert (again.erasure, again.rows) == (first.erasure, 0)
    assert again.before is not None
    # Rows that a writer still had in memory are deleted the next time.
    insert(client, block(80), "late")
    third = whole.erase_project(alone(client), PROJECT, "tester", lambda: None, lambda _: None)
    assert third.rows > 0
    assert scalar(client, f"SELECT count() FROM events WHERE project_id = {PROJECT}") == 0


def test_a_projects_erasure_that_was_killed_is_finished_by_the_next_run(client: Client) -> None:
    insert(client, block(), "t")

    def killed() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        whole.erase_project(alone(client), PROJECT, "tester", killed, lambda _: None)
    assert whole.begun(alone(client), PROJECT)
    whole.erase_project(alone(client), PROJECT, "tester", lambda: None, lambda _: None)
    assert [one.stage for one in ledger.read(client, PROJECT)] == ["done"]
