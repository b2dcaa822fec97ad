"""A token holds for the last blocks of a table only.

A block that is repeated later is not inserted: its missing rows are looked up and completed.
"""

import asyncio

import pyarrow as pa
import pytest

from schemas.chunks import Grouping
from schemas.projects import DEFAULT_RETENTION_DAYS
from storage.client import ClickHouseError, Client, open_client, scalar
from storage.exactly_once.block_tokens import is_reliable
from storage.exactly_once.insert_guard import RUNNING_TRIES
from storage.exactly_once.missing_rows import complete
from storage.exactly_once.server_state import TABLES, server_state
from storage.tables.event_columns import EventColumns
from tests.eventually import eventually
from tests.integration.storage.grouped import (
    Stage,
    chunk_event,
    counts,
    ended,
    exactly,
    insert,
    planned,
    whole,
)
from tests.long_forms import first_quick


def shorten(client: Client, window: int) -> None:
    """Let every table remember so many tokens."""
    for table in TABLES:
        client.command(f"ALTER TABLE {table} MODIFY SETTING non_replicated_deduplication_window = {window}")


def block(number: int) -> pa.Table:
    """The rows of one event."""
    columns, days = EventColumns(), DEFAULT_RETENTION_DAYS
    columns.add_row(chunk_event(number), Grouping(1, "v1", "frames", ()), days, days)
    return columns.table()


async def test_the_server_lists_a_try_while_it_runs(client: Client, clickhouse_database_url: str) -> None:
    def tries(token: str) -> int:
        return int(scalar(client, RUNNING_TRIES, {"token": token}))

    other = open_client(clickhouse_database_url)
    settings = {"insert_deduplication_token": "first", "max_block_size": 1}
    slow = (
        "INSERT INTO announced_inserts (until) SELECT now64(3) FROM numbers(10) WHERE NOT sleepEachRow(0.5)"
    )
    running = asyncio.create_task(asyncio.to_thread(other.command, slow, settings=settings))
    assert await eventually(lambda: asyncio.to_thread(tries, "first")) == 1
    assert tries("second") == 0
    await running
    assert tries("first") == 0
    other.close()


def test_a_token_counts_as_forgotten_before_it_is(client: Client) -> None:
    empty = server_state(client).mark
    assert is_reliable(empty, server_state(client))
    insert(client, block(0), "first")
    mark = server_state(client).mark
    shorten(client, 4)
    assert is_reliable(mark, server_state(client))
    for number in range(1, 4):
        insert(client, block(number), f"t{number}")
    client.command("OPTIMIZE TABLE events FINAL")
    assert not is_reliable(mark, server_state(client))
    shorten(client, 10_000)
    assert is_reliable(empty, server_state(client))
    client.command("TRUNCATE TABLE tag_day")
    assert not is_reliable(mark, server_state(client))


def test_the_tokens_of_earlier_plans_are_unreliable_once_a_completion_may_have_inserted(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def inserted(*_: object, **__: object) -> None:
        raise ClickHouseError("the writer ends here")

    mark = server_state(client).mark
    with monkeypatch.context() as patched:
        patched.setattr(client, "insert_arrow", inserted)
        with pytest.raises(ClickHouseError):
            complete(client, block(0), "block")
    assert not is_reliable(mark, server_state(client))


async def inserted_but_not_committed(stage: Stage, client: Client) -> None:
    """The state after a writer was killed between the insert of all records and its commit."""
    block, plan = await planned(stage)
    insert(client, block.columns.table(), plan.token(stage.topic))


@pytest.mark.parametrize("others", first_quick([0, 6]))
async def test_a_repeated_block_is_counted_once_whether_its_token_is_known_or_forgotten(
    stage: Stage, others: int
) -> None:
    client = stage.client()
    try:
        await stage.produce(10)
        if others:
            shorten(client, 2)
        await inserted_but_not_committed(stage, client)
        for number in range(others):
            insert(client, block(number), f"other{number}")
        assert counts(client) == exactly(stage.total + others)
        if others:
            client.command("TRUNCATE TABLE issue_hour")
        writer = stage.writer()
        with ended(writer):
            assert await whole(stage) == exactly(stage.total + others)
            repaired = 'svc_writer_repaired_rows_total{table="issue_hour"}' in writer.get("metrics")[1]
            assert repaired == bool(others)
    finally:
        client.close()
