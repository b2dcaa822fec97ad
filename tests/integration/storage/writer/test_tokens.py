"""A token holds for the last blocks of a table only; what is repeated after that is completed by looking, not inserted."""

import pytest

from schemas.chunks import Grouping
from schemas.projects import DEFAULT_RETENTION_DAYS
from storage.client import INSERT_SETTINGS, Client
from storage.repair.insert_pauses import paused
from storage.writer.event_rows import EventColumns
from storage.writer.server_state import TABLES, server_state
from storage.writer.tokens import is_doubtful, is_forgotten
from tests.integration.storage.grouped import Stage, chunk_event, counts, ended, exactly, planned, whole


def shorten(client: Client, window: int) -> None:
    """Let every table remember so many tokens."""
    for table in TABLES:
        client.command(f"ALTER TABLE {table} MODIFY SETTING non_replicated_deduplication_window = {window}")


def insert(client: Client, first: int, token: str) -> None:
    """A block of one event."""
    columns = EventColumns()
    columns.add(
        chunk_event(first), Grouping(1, "v1", "frames", ()), DEFAULT_RETENTION_DAYS, DEFAULT_RETENTION_DAYS
    )
    client.insert_arrow(
        "ingest", columns.table(), settings={**INSERT_SETTINGS, "insert_deduplication_token": token}
    )


def test_a_token_counts_as_forgotten_before_it_is(client: Client) -> None:
    empty = server_state(client).mark
    assert not is_forgotten(empty, server_state(client))
    insert(client, 0, "first")
    mark = server_state(client).mark
    shorten(client, 4)
    assert not is_forgotten(mark, server_state(client))
    for number in range(1, 4):
        insert(client, number, f"t{number}")
    client.command("OPTIMIZE TABLE events FINAL")
    assert is_forgotten(mark, server_state(client))
    shorten(client, 10_000)
    assert not is_forgotten(empty, server_state(client))
    client.command("TRUNCATE TABLE tag_day")
    assert is_forgotten(mark, server_state(client))


def test_a_block_is_doubtful_once_inserts_were_paused_since_its_mark(client: Client) -> None:
    mark = server_state(client).mark
    assert not is_doubtful(mark, server_state(client))
    with paused(client) as pause:
        pause.extend(60)
        during = server_state(client)
        assert is_doubtful(mark, during)
    after = server_state(client)
    assert is_doubtful(mark, after)
    assert is_doubtful(during.mark, after)
    assert not is_doubtful(after.mark, after)


async def inserted_but_not_committed(stage: Stage, client: Client) -> None:
    """What a writer leaves that is killed between the insert of all there is and its commit."""
    block, plan = await planned(stage)
    token = plan.token(stage.topic)
    client.insert_arrow(
        "ingest", block.columns.table(), settings={**INSERT_SETTINGS, "insert_deduplication_token": token}
    )


@pytest.mark.parametrize("others", [0, 6])
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
            insert(client, number, f"other{number}")
        assert counts(client) == exactly(stage.total + others)
        with ended(stage.writer()):
            assert await whole(stage) == exactly(stage.total + others)
    finally:
        client.close()
