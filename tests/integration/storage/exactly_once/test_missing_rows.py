import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from threading import Barrier
from typing import Any

import pyarrow as pa
import pytest

from local.clickhouse.local_clickhouse import LocalClickHouse
from schemas.chunks import Grouping
from storage.client import INSERT_SETTINGS, ClickHouseError, Client, life, open_client, scalar
from storage.exactly_once import missing_rows
from storage.exactly_once import repair_rollups as repairing
from storage.exactly_once.consistent_read import read_consistently
from storage.exactly_once.missing_rows import Missing, any_known, complete, missing
from storage.exactly_once.repair_rollups import repair_rollups
from storage.tables.event_columns import COLUMNS, EVENT_COLUMNS, PAYLOAD_COLUMNS, EventColumns
from storage.tables.migrations.migrate import migrate
from tests.eventually import eventually
from tests.integration.storage.grouped import chunk_event, counts, exactly, insert
from tests.long_forms import first_quick

ROWS = 300
TARGETS = ("events", "payloads", "issue_day", "issue_day_er", "issue_hour", "project_hour", "tag_day")


def block(size: int = ROWS) -> pa.Table:
    """A block over several time partitions and retention classes, with an id that two projects share."""
    columns = EventColumns()
    for number in range(size - 1):
        event = chunk_event(number, spread_days=15)
        columns.add_row(event, Grouping(number % 7, "v1", "frames", ()), (30, 90)[number % 2], 30)
    other = {7: 8, 8: 7}[event.project]
    twin = type(event)(other, event.id, event.received_ms, event.sdk, event.payload)
    columns.add_row(twin, Grouping(3, "v1", "frames", ()), 90, 30)
    return columns.table()


def test_columns_agree_with_the_tables(client: Client) -> None:
    def names(table: str) -> tuple[str, ...]:
        return tuple(row[0] for row in client.query(f"DESCRIBE TABLE {table}").result_rows)

    assert names("ingest") == COLUMNS
    assert names("events") == EVENT_COLUMNS
    assert names("payloads") == PAYLOAD_COLUMNS


@pytest.mark.slow
def test_a_block_that_is_read_in_another_order_is_completed_all_the_same(client: Client) -> None:
    rows = block()
    assert not any_known(client, rows)
    complete(client, rows.slice(0, 1), "t")
    # In the place of the row that was missing first.
    complete(client, rows.slice(1, 1), "t")
    assert counts(client) == exactly(2)
    assert any_known(client, rows)
    for again in (rows, rows.take([*reversed(range(ROWS))])):
        complete(client, again, "t")
        assert counts(client) == exactly(ROWS)


@pytest.mark.slow
def test_the_same_token_twice_counts_once_over_several_time_partitions(client: Client) -> None:
    rows = block()
    insert(client, rows, "t/0:0-9")
    insert(client, rows, "t/0:0-9")
    assert counts(client) == exactly(ROWS)
    assert (
        scalar(
            client,
            "SELECT uniqExact(partition) FROM system.parts"
            " WHERE active AND table = 'events' AND database = currentDatabase()",
        )
        > 4
    )


@pytest.mark.parametrize("table", first_quick(TARGETS))
def test_a_table_that_lost_its_part_but_kept_the_token_is_completed(client: Client, table: str) -> None:
    rows = block()
    # As after a kill between token and part: rows gone, token known.
    insert(client, rows, "t/0:0-9")
    client.command(f"TRUNCATE TABLE {table}") if table != "events" else client.command(
        "ALTER TABLE events DELETE WHERE id % 3 = 0 SETTINGS mutations_sync = 1"
    )
    assert counts(client) != exactly(ROWS)
    assert table in complete(client, rows, "t").rows
    assert counts(client) == exactly(ROWS)
    assert complete(client, rows, "t").rows == {}


def test_an_event_that_is_twice_in_a_block_is_stored_once(client: Client) -> None:
    rows = block()
    complete(client, pa.concat_tables([rows, rows.slice(10, 5)]), "t")
    assert counts(client) == exactly(ROWS)


def test_missing_rows_are_named_by_table_except_erased_and_expired_ones(
    client: Client,
) -> None:
    rows = block(5)
    today = max(rows["ts"].to_pylist()).date()
    keys = list(zip(rows["project_id"].to_pylist(), [n[::-1] for n in rows["id"].to_pylist()], strict=True))
    insert(client, rows, "t")
    assert missing(client, rows, today) == Missing(set(), set())
    lost, erased, bare = (f"toUInt128('{int.from_bytes(number, 'big')}')" for _, number in keys[:3])
    for table in ("events", "payloads"):
        client.command(
            f"ALTER TABLE {table} DELETE WHERE id IN ({lost}, {erased}) SETTINGS mutations_sync = 1"
        )
    client.command(f"ALTER TABLE payloads DELETE WHERE id = {bare} SETTINGS mutations_sync = 1")
    client.command(
        f"INSERT INTO erased_events (project_id, id, day) VALUES ({keys[1][0]}, {erased}, today())"
    )
    assert missing(client, rows, today) == Missing({keys[0]}, {keys[0], keys[2]})
    assert missing(client, rows, today + timedelta(days=400)) == Missing(set(), set())


def test_a_row_that_the_table_refuses_is_found_and_the_rest_is_whole(client: Client) -> None:
    client.command("ALTER TABLE events ADD CONSTRAINT tame CHECK message NOT LIKE '%number 42'")
    rows = block()
    done = complete(client, rows, "t")
    assert [rows["message"][row].as_py() for row, _ in done.refused] == ["Cannot read number 42"]
    assert counts(client) == exactly(ROWS - 1)


def test_a_rollup_with_too_many_or_too_few_is_repaired(client: Client) -> None:
    rows = block()
    insert(client, rows, "a")
    client.command("INSERT INTO issue_hour SELECT * FROM issue_hour LIMIT 5")
    client.command("ALTER TABLE tag_day DELETE WHERE k = 'tier' SETTINGS mutations_sync = 1")
    users = "SELECT uniqCombinedMerge(12)(users) FROM issue_hour"
    before = scalar(client, users)
    days = [
        (int(p), d) for p, d in client.query("SELECT DISTINCT project_id, toDate(ts) FROM events").result_rows
    ]
    repaired = repair_rollups(client, days)
    assert repaired["issue_hour"] > 0
    assert repaired["tag_day"] > 0
    assert counts(client) == exactly(ROWS)
    assert scalar(client, users) == before
    assert sum(repair_rollups(client, days).values()) == 0


@pytest.mark.slow
def test_two_repairs_that_see_the_same_blocks_insert_their_difference_once(
    client: Client, clickhouse_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = block()
    insert(client, rows, "a")
    client.command("TRUNCATE TABLE issue_hour")
    days = {
        (project, moment.date())
        for project, moment in zip(*rows.select(["project_id", "ts"]).to_pydict().values(), strict=True)
    }
    both = Barrier(2, timeout=60)

    def in_step(work: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **options: Any) -> Any:
            done = work(*arguments, **options)
            both.wait()
            return done

        return step

    monkeypatch.setattr(repairing, "read_consistently", in_step(read_consistently))
    monkeypatch.setattr(type(client), "raw_insert", in_step(type(client).raw_insert))
    other = open_client(clickhouse_database_url)
    try:
        with ThreadPoolExecutor(2) as threads:
            for repair in [threads.submit(repair_rollups, one, days) for one in (client, other)]:
                repair.result()
    finally:
        other.close()
    assert counts(client) == exactly(ROWS)


def test_two_concurrent_completions_count_a_block_once(client: Client, clickhouse_database_url: str) -> None:
    other = open_client(clickhouse_database_url)
    try:
        for turn in range(2):
            rows = block()
            insert(client, rows, f"t{turn}")
            client.command("ALTER TABLE events DELETE WHERE id % 3 = 0 SETTINGS mutations_sync = 1")
            client.command("TRUNCATE TABLE issue_hour")
            with ThreadPoolExecutor(2) as threads:
                done = [threads.submit(complete, one, rows, f"t{turn}") for one in (client, other)]
            assert all(one.result().refused == [] for one in done)
            assert any_known(client, rows)
            found = counts(client)
            assert found["events"] == found["distinct"] == found["issue_hour"], (turn, found, done)
            for table in TARGETS:
                client.command(f"TRUNCATE TABLE {table}")
    finally:
        other.close()


@pytest.mark.parametrize("table", first_quick(["events", "payloads"]))
def test_a_completion_that_halves_its_rows_during_another_counts_nothing_twice(
    client: Client, clickhouse_database_url: str, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    monkeypatch.setattr("storage.exactly_once.sessions.SESSION_SECONDS", 60)
    other, rows = open_client(clickhouse_database_url), block()
    client.command("ALTER TABLE events ADD CONSTRAINT tame CHECK message NOT LIKE '%number 42'")
    insert_arrow, meanwhile = client.insert_arrow, count()

    def insert(target: str, *arguments: Any, **options: Any) -> Any:
        # After the refusal of all its rows, or before its only insert.
        if target == table and next(meanwhile) == (table == "events"):
            other.command("ALTER TABLE events DROP CONSTRAINT tame")
            complete(other, rows, "t")
        return insert_arrow(target, *arguments, **options)

    monkeypatch.setattr(client, "insert_arrow", insert)
    complete(client, rows, "t")
    assert counts(client) == exactly(ROWS)
    other.close()


def test_another_completion_that_was_taken_in_one_partition_only_counts_nothing_twice(
    client: Client, clickhouse_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server knows the token of its rows there, and not in the other partitions of a half."""
    monkeypatch.setattr("storage.exactly_once.sessions.SESSION_SECONDS", 60)
    other, rows = open_client(clickhouse_database_url), block()
    client.command("ALTER TABLE events ADD CONSTRAINT one CHECK message LIKE '%number 0'")
    insert_here, insert_there, refusals = client.insert_arrow, other.insert_arrow, count()

    def insert_after_other(*arguments: Any, **options: Any) -> Any:
        try:
            return insert_here(*arguments, **options)
        except ClickHouseError:
            if next(refusals) == 0:
                complete(other, rows, "t")
            raise

    def insert_before(*arguments: Any, **options: Any) -> Any:
        taken = insert_there(*arguments, **options)
        other.command("ALTER TABLE events DROP CONSTRAINT IF EXISTS one")
        return taken

    monkeypatch.setattr(client, "insert_arrow", insert_after_other)
    monkeypatch.setattr(other, "insert_arrow", insert_before)
    complete(client, rows, "t")
    assert counts(client) == exactly(ROWS)
    other.close()


class Killed(BaseException):
    """The process ends before it can look again."""


def test_a_completion_killed_while_it_unpacks_leaves_no_payload_twice(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = EventColumns()
    for number in range(60):
        columns.add_row(chunk_event(number), Grouping(number % 4, "v1", "frames", ()), 90, 30)
    # The insert of the whole block reached this table only.
    packed = columns.packed().select(list(PAYLOAD_COLUMNS))
    client.insert_arrow("payloads", packed, settings=dict(INSERT_SETTINGS))
    client.command("ALTER TABLE events ADD CONSTRAINT tame CHECK message NOT LIKE '%number 42'")

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patches:
        patches.setattr(missing_rows, "_forget", killed)
        with pytest.raises(Killed):
            complete(client, columns.table(), "t")
    assert counts(client)["payloads"] > 60
    client.command("ALTER TABLE events DROP CONSTRAINT tame")
    assert complete(client, columns.table(), "t").refused == []
    assert counts(client) == exactly(60)


def late(client: Client, monkeypatch: pytest.MonkeyPatch, table: str, meanwhile: Callable[[], None]) -> None:
    """Freeze the client before its insert into a table, and let it die after it."""

    def freezing(insert: Callable[..., Any]) -> Callable[..., Any]:
        def freeze(target: str, *arguments: Any, **options: Any) -> Any:
            if target != table:
                return insert(target, *arguments, **options)
            meanwhile()
            insert(target, *arguments, **options)
            raise Killed

        return freeze

    for name in ("insert_arrow", "raw_insert"):
        monkeypatch.setattr(client, name, freezing(getattr(client, name)))


@pytest.mark.slow
@pytest.mark.parametrize("table", ["events", "payloads", "issue_hour"])
def test_a_completion_that_stood_still_while_the_server_was_started_again_counts_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    server = LocalClickHouse(tmp_path / "clickhouse").start()
    try:
        migrate(server.url())
        client, other = open_client(server.url()), open_client(server.url())
        rows = block()

        def meanwhile() -> None:
            server.stop()
            server.start()
            complete(other, rows, "t")

        late(client, monkeypatch, table, meanwhile)
        # The comparison that it makes again finds nothing missing.
        with suppress(ClickHouseError):
            complete(client, rows, "t")
        assert counts(other) == exactly(ROWS)
        client.close()
        other.close()
    finally:
        server.stop()


@pytest.mark.parametrize("table", first_quick(["events", "payloads"]))
def test_a_completion_that_stood_still_brings_nothing_back_that_was_erased(
    client: Client, clickhouse_database_url: str, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    monkeypatch.setattr("storage.exactly_once.sessions.SESSION_SECONDS", 1)
    other = open_client(clickhouse_database_url)
    rows = block(2)

    def meanwhile() -> None:
        for row in rows.to_pylist():
            number = int.from_bytes(row["id"], "little")
            other.command(
                f"INSERT INTO erased_events (project_id, id, day) VALUES ({row['project_id']}, {number}, today())"
            )
        for name in ("events", "payloads"):
            other.command(f"ALTER TABLE {name} DELETE WHERE 1 SETTINGS mutations_sync = 1")
        outlast_session(other)

    late(client, monkeypatch, table, meanwhile)
    complete(client, rows, "t")
    assert counts(other)[table] == 0
    other.close()


def outlast_session(client: Client) -> None:
    """Wait as long as the server may remember a session of one second."""
    client.query(
        "SELECT sleepEachRow(1) FROM numbers(4) SETTINGS function_sleep_max_microseconds_per_block = 10000000"
    )


@pytest.mark.parametrize("table", first_quick(["events", "payloads", "issue_hour"]))
def test_a_completion_whose_insert_comes_too_late_takes_a_longer_session(
    client: Client, clickhouse_database_url: str, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    monkeypatch.setattr("storage.exactly_once.sessions.SESSION_SECONDS", 1)
    other, tries = open_client(clickhouse_database_url), list[str]()

    def slow(insert: Callable[..., Any]) -> Callable[..., Any]:
        def inserted(target: str, *arguments: Any, **options: Any) -> Any:
            if target == table and not tries:
                outlast_session(other)
            tries.extend([target] * (target == table))
            return insert(target, *arguments, **options)

        return inserted

    for name in ("insert_arrow", "raw_insert"):
        monkeypatch.setattr(client, name, slow(getattr(client, name)))
    complete(client, block(), "t")
    assert len(tries) > 1
    assert counts(other) == exactly(ROWS)
    other.close()


def uptime(client: Client) -> int:
    """Whole seconds since the server's start."""
    return int(scalar(client, "SELECT uptime()"))


def is_older(client: Client, seconds: int) -> bool:
    return uptime(client) > seconds


@pytest.mark.slow
def test_a_life_is_the_same_until_the_server_starts_again(tmp_path: Path) -> None:
    server = LocalClickHouse(tmp_path / "clickhouse")
    lives = []
    try:
        for _ in range(2):
            server.start()
            client = open_client(server.url())
            first, born = life(client), uptime(client)
            # One second later by the server's clock, from which the life was computed once.
            asyncio.run(eventually(partial(is_older, client, born + 1)))
            assert life(client) == first
            assert len(first) == 32
            lives.append(first)
            client.close()
            server.kill()
    finally:
        server.stop()
    assert lives[0] != lives[1]
