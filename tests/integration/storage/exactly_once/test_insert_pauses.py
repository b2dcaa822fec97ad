"""Tables are compared and completed under load.

Writers wait for the process that compares, and nothing waits for a silent database.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count

import pyarrow as pa
import pytest

from schemas.chunks import Grouping
from storage.client import Client, open_client, scalar
from storage.exactly_once.consistent_read import NoConsistentRead, read_in_pause
from storage.exactly_once.insert_pauses import announce, in_force, paused
from storage.exactly_once.missing_rows import complete
from storage.maintain.reconcile.reconcile import compare
from storage.shards import alone
from storage.tables.event_columns import EventColumns
from tests.eventually import eventually
from tests.integration.storage.exactly_once.test_missing_rows import block
from tests.integration.storage.grouped import (
    Stage,
    chunk_event,
    counts,
    ended,
    exactly,
    insert,
    whole,
)

RECENT = 20
MAKING = threading.Lock()
OTHERS = {
    "issues": "INSERT INTO issues (project_id, issue_id) SELECT 7, rand64()",
    "issue_activity": "INSERT INTO issue_activity (project_id, issue_id) SELECT 7, rand64()",
    "outcomes": "INSERT INTO outcomes (project_id, outcome, minute) SELECT 7, toString(rand64()), now()",
}


def recent() -> pa.Table:
    """A block of events of today, as almost all are."""
    columns = EventColumns()
    # A compressor is for one thread.
    with MAKING:
        for number in range(RECENT):
            columns.add_row(chunk_event(number), Grouping(number % 7, "v1", "frames", ()), 90, 30)
    return columns.table()


@contextmanager
def going_on(*loops: Callable[[threading.Event], None]) -> Iterator[None]:
    """Each loop in a thread, until the block is left."""
    stop = threading.Event()
    threads = [threading.Thread(target=loop, args=(stop,)) for loop in loops]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def endless(url: str, sql: str) -> Callable[[threading.Event], None]:
    """One insert after the other."""

    def loop(stop: threading.Event) -> None:
        client = open_client(url)
        while not stop.is_set():
            client.command(sql)
        client.close()

    return loop


class Blocks:
    """Inserts blocks of events one after the other, and waits for nothing but pauses, as writers do."""

    def __init__(self, url: str, name: str) -> None:
        self.rows = 0
        self._url = url
        self._name = name

    def __call__(self, stop: threading.Event) -> None:
        """Until stopped."""
        client = open_client(self._url)
        for number in count():
            waiting = in_force(client)
            while waiting and not stop.is_set():
                stop.wait(0.01)
                waiting &= in_force(client)
            if stop.is_set():
                break
            insert(client, recent(), f"{self._name}{number}")
            self.rows += RECENT
        client.close()


@pytest.mark.slow
def test_a_block_is_completed_while_inserts_into_every_table_never_end(
    client: Client, clickhouse_database_url: str
) -> None:
    writers = [Blocks(clickhouse_database_url, name) for name in "ab"]
    others = [endless(clickhouse_database_url, sql) for sql in OTHERS.values()]
    rows = recent()
    insert(client, rows, "t")
    client.command("ALTER TABLE events DELETE WHERE id % 3 = 0 SETTINGS mutations_sync = 1")
    client.command("TRUNCATE TABLE issue_hour")
    with going_on(*writers, *others):
        completed = complete(client, rows, "t").rows.keys()
        assert {"events", "issue_hour"} <= completed
        assert compare(alone(client), datetime.now(UTC).date(), quiet_seconds=0).quiet
    found = counts(client)
    assert found == exactly(RECENT + sum(writer.rows for writer in writers))
    assert all(writer.rows for writer in writers)


def test_a_reading_that_an_insert_overlapped_is_never_kept(client: Client) -> None:
    readings = count()

    def overlapped(_blocks: int) -> int:
        insert(client, block(3), f"t{next(readings)}")
        return scalar(client, "SELECT count() FROM events")  # type: ignore[no-any-return]

    with pytest.raises(NoConsistentRead):
        read_in_pause((client,), ("events",), overlapped, 0)


def test_an_announced_insert_counts_as_running_until_its_announcement_expires(client: Client) -> None:
    announce(client, 600)
    with pytest.raises(NoConsistentRead):
        read_in_pause((client,), ("events",), lambda blocks: blocks, 0)
    client.command("TRUNCATE TABLE announced_inserts")
    announce(client, -5)
    assert read_in_pause((client,), ("events",), lambda _: "read", 0) == "read"


def test_a_pause_ends_with_its_holder_or_by_itself(client: Client) -> None:
    with paused(client) as pause:
        assert not in_force(client)
        pause.extend(60)
        assert len(in_force(client)) == 1
    assert not in_force(client)
    with paused(client) as pause:
        pause.extend(0)
        assert not in_force(client)


async def test_a_writer_inserts_nothing_in_a_pause_and_goes_on_after_it(stage: Stage) -> None:
    client = stage.client()
    writer = stage.writer(SVC_LOG_LEVEL="debug")

    async def waits() -> bool:
        return "insert_paused" in writer.log.read_text()

    try:
        with ended(writer):
            with paused(client) as pause:
                pause.extend(600)
                await stage.produce(3)
                await eventually(waits)
                assert counts(client) == exactly(0)
            assert await whole(stage) == exactly(stage.total)
    finally:
        client.close()
