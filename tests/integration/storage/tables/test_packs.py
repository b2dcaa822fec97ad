"""Payloads in packs, on a real server: deleting some events of a pack leaves each of the others its payload once."""

import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import msgspec
import pytest

from schemas.chunks import ChunkEvent, Grouping
from storage.client import Client, open_client
from storage.exactly_once.missing_rows import complete
from storage.exactly_once.unpacking import unpack
from storage.maintain.reconcile.duplicates import remove_duplicates
from storage.read.events import payloads
from storage.read.events.event_detail import GetProjectEvent
from storage.read.execute import Executor, Limits, Sql
from storage.read.reader import Reader
from storage.tables.event_columns import EventColumns
from storage.tables.packs import unpacked
from tests.integration.storage.grouped import chunk_event, insert
from tests.integration.storage.maintain.erase.rows import PROJECT, USER, erase, exact

ROWS = 240
Payloads = dict[tuple[int, bytes], bytes]


class Block:
    """Events of two projects and three weeks, ten of them of the user."""

    def __init__(self, size: int = ROWS) -> None:
        self.events = [chunk_event(number, spread_days=15) for number in range(size)]
        self.columns = EventColumns()
        for number, event in enumerate(self.events):
            self.columns.add_row(event, Grouping(number % 7, "v1", "frames", ()), 90, 30)
        self.sent: Payloads = {(event.project, event.id): event.payload for event in self.events}

    def of_user(self, event: ChunkEvent) -> bool:
        return event.project == PROJECT and msgspec.json.decode(event.payload)["user"]["id"] == USER

    def others(self) -> Payloads:
        return {(event.project, event.id): event.payload for event in self.events if not self.of_user(event)}


def stored(client: Client) -> Payloads:
    """All payloads as they were sent. Fails if one is there twice or can't be read."""
    answer = client.query(
        "SELECT project_id, id, pack, payload FROM payloads", column_formats={"payload": "bytes"}
    )
    rows = {
        (int(project), int(number)): (int(pack), payload)
        for project, number, pack, payload in answer.result_rows
    }
    assert len(rows) == len(answer.result_rows), "an event is stored twice"
    found: Payloads = {}
    for (project, number), (pack, payload) in rows.items():
        event = number.to_bytes(16, "big")
        found[project, event] = unpacked(rows[project, pack][1])[event] if pack else payload
    return found


def in_packs(client: Client) -> Counter[int]:
    """The events of each pack."""
    return Counter(row[0] for row in client.query("SELECT pack FROM payloads WHERE pack != 0").result_rows)


def delete(client: Client) -> Callable[[str], Any]:
    return lambda where: client.command(
        f"ALTER TABLE payloads DELETE WHERE {where} SETTINGS mutations_sync = 1"
    )


def test_an_erased_user_is_in_no_pack_and_the_others_keep_their_payloads(client: Client) -> None:
    block = Block()
    insert(client, block.columns.packed(), "t")
    report = erase(client)
    assert report.events == len(block.sent) - len(block.others()) == ROWS // 40
    assert stored(client) == block.others()
    exact(client)
    kept = client.query("SELECT payload FROM payloads WHERE pack = id", column_formats={"payload": "bytes"})
    erased = {event.id for event in block.events if block.of_user(event)}
    assert not any(erased & unpacked(pack).keys() for (pack,) in kept.result_rows)
    assert {row.table: (row.rows_before, row.rows_after) for row in report.tables}["payloads"] == (
        ROWS // 40,
        0,
    )
    assert (
        "_row_exists" not in client.query("SELECT column FROM system.parts_columns WHERE active").result_set
    )


def test_unpacking_interrupted_between_insert_and_deletion_is_finished_by_the_next(client: Client) -> None:
    block = Block()
    insert(client, block.columns.packed(), "t")

    def die(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        unpack(client, f"project_id = {PROJECT}", die)
    unpack(client, f"project_id = {PROJECT}", delete(client))
    assert stored(client) == block.sent
    projects = client.query("SELECT DISTINCT project_id FROM payloads WHERE pack != 0").result_rows
    assert [project for (project,) in projects] == [7]


@pytest.mark.slow
def test_two_concurrent_unpackings_store_each_event_once(
    client: Client, clickhouse_database_url: str
) -> None:
    block = Block()
    insert(client, block.columns.packed(), "t")
    together = Barrier(2, timeout=60)
    clients = [open_client(clickhouse_database_url) for _ in range(2)]

    def run(own: Client) -> None:
        together.wait()
        unpack(own, "1", delete(own))

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(run, clients))
    for own in clients:
        own.close()
    assert stored(client) == block.sent
    assert not in_packs(client)


@pytest.mark.slow
def test_packs_that_are_stored_twice_are_stored_once_afterwards(client: Client) -> None:
    block, other = Block(), Block(20)
    for token in "ab":
        insert(client, block.columns.packed(), token)
    insert(client, other.columns.packed(), "c")
    before = in_packs(client)
    remove_duplicates(client, "payloads")
    remove_duplicates(client, "events")
    assert stored(client) == block.sent | other.sent
    assert in_packs(client).keys() == {
        pack for pack in before if pack.to_bytes(16, "big") in {e.id for e in other.events}
    }


def test_a_refused_event_leaves_its_pack_and_the_others_stay(client: Client) -> None:
    block = Block()
    rows = block.columns.packed()
    packs = {pack[::-1] for pack in rows["pack"].to_pylist()}
    row = next(row for row, event in enumerate(block.events) if event.id in packs)
    client.command(f"ALTER TABLE events ADD CONSTRAINT tame CHECK message NOT LIKE '%number {row}'")
    # Rows that a refused block may have left.
    client.command(
        "ALTER TABLE mv_events MODIFY QUERY SELECT * EXCEPT (payload, payload_days, pack) FROM ingest WHERE 0"
    )
    insert(client, rows, "t")
    done = complete(client, block.columns.table(), "t")
    assert [refused for refused, _ in done.refused] == [row]
    del block.sent[block.events[row].project, block.events[row].id]
    assert stored(client) == block.sent


def test_a_pack_that_cannot_be_read_is_named_and_goes(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    block = Block()
    insert(client, block.columns.packed(), "t")
    [(pack, size)] = in_packs(client).most_common(1)
    damage = (
        "ALTER TABLE payloads UPDATE payload = substring(payload, 1, 50)"
        f" WHERE id = toUInt128('{pack}') AND pack = id"
    )
    client.command(f"{damage} SETTINGS mutations_sync = 1")
    with caplog.at_level(logging.WARNING):
        unpack(client, f"id = toUInt128('{pack}')", delete(client))
    assert "unreadable payload pack" in caplog.text
    found = stored(client)
    assert len(found) == ROWS - size
    assert found.items() <= block.sent.items()


@pytest.fixture
async def reader(clickhouse_database_url: str) -> AsyncIterator[Reader]:
    made = Reader(Executor([clickhouse_database_url], Limits()), lambda: time.time_ns() // 1_000_000)
    yield made
    await made.close()


async def read(reader: Reader, event: ChunkEvent) -> bytes:
    detail = await reader.read(GetProjectEvent(event.project, event.id.hex()))
    assert detail.event is not None
    return bytes(detail.event)


@pytest.mark.slow
async def test_an_event_is_read_whose_pack_is_taken_apart_meanwhile(
    client: Client, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    block, statements = Block(), []
    insert(client, block.columns.packed(), "t")
    packs = {pack.to_bytes(16, "big") for pack in in_packs(client)}
    event = next(event for event in block.events if event.id not in packs)

    def between(*arguments: Any) -> Sql:
        statements.append(arguments)
        if len(statements) == 2:
            unpack(client, "1", delete(client))
        return statement(*arguments)

    statement = payloads._by_id
    monkeypatch.setattr(payloads, "_by_id", between)
    assert await read(reader, event) == event.payload
    assert len(statements) == 3
