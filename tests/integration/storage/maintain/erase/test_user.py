import asyncio
import secrets
import threading
import uuid
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from schemas.chunks import Grouping
from schemas.ids import hex64, issue_id, user_hash
from storage.client import Client, open_client, scalar
from storage.errors import UnknownUser
from storage.exactly_once import repair_rollups as repairing
from storage.exactly_once.missing_rows import complete
from storage.exactly_once.repair_rollups import repair_where
from storage.maintain.erase import erase_user as erasing
from storage.maintain.erase import ledger
from storage.maintain.erase import purge as purging
from storage.maintain.erase.erase_user import TABLES, erase_user
from storage.maintain.erase.erased_issues import IssueDescription
from storage.shards import alone
from storage.tables.erased import ERASED
from storage.tables.event_columns import EventColumns
from storage.tables.rollups import ROLLUPS
from tests.eventually import eventually
from tests.integration.storage.grouped import chunk_event, insert
from tests.integration.storage.maintain.erase.rows import (
    PROJECT,
    USER,
    block,
    erase,
    exact,
    nothing,
    of_user,
    others,
)
from tests.long_forms import first_quick


@pytest.mark.parametrize("small", [True, False], ids=["small tables", "large tables"])
def test_a_users_rows_are_gone_from_every_table_and_everybody_elses_stay(
    client: Client, monkeypatch: pytest.MonkeyPatch, small: bool
) -> None:
    if not small:
        monkeypatch.setattr(erasing, "SMALL_BYTES", 0)
        monkeypatch.setattr(purging, "SMALL_BYTES", 0)
    rows = block(400, spread_days=15)
    days = pa.array([(30, 90)[number % 3 == 0] for number in range(400)], pa.uint16())
    insert(client, rows.set_column(rows.column_names.index("retention_days"), "retention_days", days), "t")
    before, size = others(client), of_user(client)["events"]
    assert size == 400 // 40
    weeks = scalar(
        client,
        f"SELECT uniqExact(toMonday(ts)) FROM events WHERE project_id = {PROJECT} AND user_id = '{USER}'",
    )
    progress: list[str] = []
    report = erase(client, say=progress.append)
    # Each time costs writers a pause, and the server a look at every part.
    assert sum(line.startswith("weeks") for line in progress) == (1 if small else weeks)
    assert weeks > 1
    assert nothing(of_user(client))
    assert others(client) == before
    exact(client)
    assert report.events == size
    rows = {one.table: (one.rows_before, one.rows_after) for one in report.tables}
    assert rows["events"] == rows["payloads"] == (size, 0)
    assert set(rows) == set(TABLES)
    assert all(before > 0 for before, _ in rows.values())
    # No key of a rollup stays behind with a count of nothing.
    for rollup in ROLLUPS:
        zeros = f"SELECT count() FROM (SELECT sum(n) AS s FROM {rollup.table} GROUP BY {rollup.names} HAVING s = 0)"
        assert scalar(client, zeros) == 0


@pytest.mark.slow
def test_the_bytes_are_gone_from_the_disk(client: Client) -> None:
    # Old parts are removed immediately, whatever the server's default.
    client.command("ALTER TABLE payloads MODIFY SETTING old_parts_lifetime = 0, cleanup_delay_period = 1")
    columns = EventColumns()
    for number in range(80):
        message = secrets.token_hex(50_000) if number == 7 else "m"
        error = {"type": "E", "message": message, "stack": []}
        user = {"id": USER if number == 7 else "other"}
        columns.add_row(chunk_event(number, user=user, error=error), Grouping(1, "v1", "frames", ()), 90, 30)
    insert(client, columns.table(), "t")
    on_disk = "SELECT sum(bytes_on_disk) FROM system.parts WHERE database = currentDatabase() AND table = 'payloads'"
    before = scalar(client, on_disk)
    report = erase(client)
    sizes = {one.table: (one.bytes_before, one.bytes_after) for one in report.tables}
    assert sizes["payloads"][0] - sizes["payloads"][1] > 40_000
    masked = (
        "SELECT count() FROM system.parts_columns"
        " WHERE active AND database = currentDatabase() AND column = '_row_exists'"
    )
    assert scalar(client, masked) == 0

    def freed() -> bool:
        return bool(scalar(client, on_disk) < before - 40_000)

    asyncio.run(eventually(freed, 60))


def test_a_second_time_there_is_nothing_and_a_stranger_is_refused(client: Client) -> None:
    insert(client, block(), "t")
    with pytest.raises(UnknownUser):
        erase(client, user="user-4711")
    first = erase(client)
    again = erase(client)
    assert (again.events, again.erasure) == (0, first.erasure)
    assert again.before is not None
    assert all(one.rows_before == 0 for one in again.tables)
    with pytest.raises(UnknownUser):
        erase(client, user="user-4711")
    assert len(ledger.read(client, PROJECT)) == 1


def test_the_users_id_is_nowhere_afterwards_not_even_in_the_servers_logs(client: Client) -> None:
    columns = EventColumns()
    secret = "somebody-7f3a9c"
    columns.add_row(chunk_event(1, user={"id": secret}), Grouping(1, "v1", "frames", ()), 30, 30)
    insert(client, columns.table(), "t")
    erase(client, user=secret)
    client.command("SYSTEM FLUSH LOGS")
    database = scalar(client, "SELECT currentDatabase()")
    logged = (
        "SELECT count() FROM system.query_log"
        " WHERE current_database = {d:String} AND position(query, {s:String}) > 0"
    )
    for word in (secret, str(user_hash(7, secret)), str(user_hash(PROJECT, secret))):
        # This very question is not yet in the log.
        assert scalar(client, logged, {"d": database, "s": word}) == 0
        mutations = (
            "SELECT count() FROM system.mutations"
            " WHERE database = currentDatabase() AND position(command, {s:String}) > 0"
        )
        assert scalar(client, mutations, {"s": word}) == 0
    for row in ledger.read(client, PROJECT):
        assert secret not in str(row)


@pytest.mark.parametrize(
    ("module", "name", "call"),
    first_quick(
        [
            (erasing, "repair_where", 0),
            (erasing, "measure", 1),
            (erasing, "purge", 0),
            (erasing, "purge", 1),
            (repairing, "read_consistently", 2),
            (erasing, "redescribe", 0),
            (erasing, "_drop_lists", 0),
        ]
    ),
    ids=lambda value: value.__name__ if isinstance(value, ModuleType) else str(value),
)
def test_an_erasure_killed_at_any_step_is_finished_by_the_next_run(
    client: Client, module: ModuleType, name: str, call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert(client, block(), "t")
    size, real = of_user(client)["events"], getattr(module, name)
    calls = 0

    def killed(*given: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > call:
            raise KeyboardInterrupt
        return real(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(module, name, killed)
        with pytest.raises(KeyboardInterrupt):
            erase(client)
    report = erase(client)
    assert nothing(of_user(client))
    exact(client)
    assert report.events in {0, size}
    counted = scalar(client, f"SELECT sum(n) FROM ({ERASED})")
    assert counted == size


@pytest.mark.slow
def test_two_runs_of_one_erasure_at_the_same_time_leave_every_rollup_exact(
    client: Client, clickhouse_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second deletes the rows that the first has recounted, and recounts after the first has dropped the lists."""
    insert(client, block(), "t")
    deleted, dropped = threading.Event(), threading.Event()
    reports = list[Any]()

    def late(other: Client, *arguments: Any) -> Any:
        if other is not client:
            deleted.set()
            assert dropped.wait(30)
        return repair_where(other, *arguments)

    def resume() -> None:
        second = open_client(clickhouse_database_url)
        try:
            reports.extend(erasing.resume(alone(second), PROJECT, lambda _, __: None, lambda _: None))
        finally:
            second.close()

    thread = threading.Thread(target=resume)

    def start_the_second(_: str, __: list[IssueDescription]) -> None:
        thread.start()
        assert deleted.wait(30)

    monkeypatch.setattr(erasing, "repair_where", late)
    try:
        erase_user(alone(client), PROJECT, USER, "tester", lambda: None, start_the_second, lambda _: None)
    finally:
        dropped.set()
        thread.join()
    assert len(reports) == 1
    assert nothing(of_user(client))
    exact(client)


def test_records_read_again_from_the_log_do_not_bring_it_back(client: Client) -> None:
    rows = block()
    insert(client, rows, "t")
    erase(client)
    done = complete(client, rows, "repair/1")
    assert done.rows == {}
    assert nothing(of_user(client))
    client.command("TRUNCATE TABLE events")
    assert complete(client, rows, "repair/2").rows["events"] > 0
    assert nothing(of_user(client))
    exact(client)


@pytest.mark.slow
def test_an_event_that_comes_after_the_erasure_is_a_new_one(client: Client) -> None:
    insert(client, block(), "t")
    first = erase(client)
    insert(client, block(80), "u")
    assert of_user(client)["events"] == 80 // 40
    second = erase(client)
    assert second.events == 80 // 40
    assert second.erasure != first.erasure
    assert nothing(of_user(client))
    exact(client)
    # One salt a project: both are found by a single hash.
    assert len({(one.salt, one.digest) for one in ledger.read(client, PROJECT)}) == 1


def test_an_issue_described_by_an_erased_event_is_described_by_another(client: Client) -> None:
    # In two of the issues the user's event is the newest.
    insert(client, block(100), "t")
    insert(client, block(8), "u")
    described = """
        INSERT INTO issues (project_id, issue_id, fingerprints, message, events, last_event, version)
        SELECT project_id, fingerprint + 1, [fingerprint], argMaxIf(message, ts, user_id = {user:String}), count(),
            argMaxIf(id, ts, user_id = {user:String}), 5
        FROM events WHERE project_id = {project:UInt32} GROUP BY project_id, fingerprint
        HAVING countIf(user_id = {user:String}) > 0"""
    client.command(described, parameters={"user": USER, "project": PROJECT})
    before = client.query("SELECT issue_id, events, version FROM issues FINAL ORDER BY issue_id").result_rows
    descriptions: list[IssueDescription] = []
    last = """SELECT fingerprint, toUnixTimestamp64Milli(max(ts)), max((ts, id)).2 FROM events
        WHERE project_id = 8 AND user_id {} 'user-7' GROUP BY 1"""
    erased = {number: event for number, _, event in client.query(last.format("=")).result_rows}
    others_last = {number: (ms, event) for number, ms, event in client.query(last.format("!=")).result_rows}
    newer = "SELECT fingerprint FROM events WHERE project_id = 8 GROUP BY 1 HAVING argMax(user_id, (ts, id)) = 'user-7'"
    newest_erased = {int(row[0]) for row in client.query(newer).result_rows}
    report = erase_user(
        alone(client),
        PROJECT,
        USER,
        "tester",
        lambda: None,
        lambda _, found: descriptions.extend(found),
        lambda _: None,
    )
    assert report.issues == [f"{issue:016x}" for issue, _, _ in before]
    assert {one.issue: (one.erased, one.newest, one.newest_ms) for one in descriptions} == {
        hex64(issue_id(PROJECT, number)): (
            str(uuid.UUID(int=erased[number])),
            str(uuid.UUID(int=others_last[number][1])),
            others_last[number][0],
        )
        for number in newest_erased
    }
    after = client.query("SELECT issue_id, events, version FROM issues FINAL ORDER BY issue_id").result_rows
    assert after == before
    newest = """
        SELECT count() FROM issues AS i INNER JOIN
            (SELECT fingerprint, argMax(id, (ts, id)) AS newest, argMax(message, (ts, id)) AS text FROM events
             WHERE project_id = {project:UInt32} GROUP BY fingerprint) AS e ON e.fingerprint = i.issue_id - 1
        WHERE i.last_event = e.newest AND i.message = e.text"""
    # Not only the read rows: no older row is left on disk either.
    assert scalar(client, newest, {"project": PROJECT}) == len(before)
    assert scalar(client, "SELECT count() FROM issues") == len(before)


def test_an_issue_of_the_user_alone_is_left_without_text(client: Client) -> None:
    columns = EventColumns()
    columns.add_row(chunk_event(1, user={"id": USER}), Grouping(1, "v1", "frames", ()), 30, 30)
    insert(client, columns.table(), "t")
    client.command(
        """INSERT INTO issues (project_id, issue_id, fingerprints, message, events, last_event, version)
           SELECT project_id, 1, [1], message, 1, id, 1 FROM events"""
    )
    erase(client)
    assert client.query("SELECT message, last_event, events FROM issues").result_rows == [("", 0, 1)]


def test_lists_that_were_given_up_are_thrown_away(client: Client) -> None:
    insert(client, block(), "t")

    def never() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        erase(client, settle=never)
    assert of_user(client)["lists"] == 0
    assert of_user(client)["events"] > 0
    assert erase(client).events > 0
