"""Which ids are stored, by a real server, and the wait for one that doesn't answer."""

import asyncio

import pytest

from local.ports import free_port
from schemas.health import Health
from schemas.ids import uuid7
from storage.client import Client
from storage.read.events.stored_ids import PART, StoredIds, stored
from storage.shards import only
from tests.eventually import eventually

DAY = 86_400_000
NOW = 1_790_000_000_000


def insert(client: Client, project: int, *ids: bytes, day: int = 0) -> None:
    """Rows of `events` whose time has nothing to do with their ids."""
    rows = ", ".join(
        f"({project}, 5, fromUnixTimestamp64Milli({NOW - day * DAY}),"
        f" toUInt128('{int.from_bytes(i, 'big')}'), now64(3), 90)"
        for i in ids
    )
    client.command(
        f"INSERT INTO events (project_id, fingerprint, ts, id, received, retention_days) VALUES {rows}"
    )


def test_stored_and_erased_ids_are_found_and_no_others(database: Client, project: int) -> None:
    old, young, erased, absent = (uuid7(NOW - days * DAY).bytes for days in (89, 1, 40, 30))
    insert(database, project, old, day=3)
    insert(database, project, young)
    insert(database, project + 1, absent)
    database.command(
        "INSERT INTO erased_events (project_id, id, day) VALUES"
        f" ({project}, toUInt128('{int.from_bytes(erased, 'big')}'), today())"
    )
    ids = [(project, i) for i in (old, young, erased, absent)] + [(project + 1, old), (project + 1, absent)]
    assert stored(database, ids) == {
        *((project, i) for i in (old, young, erased)),
        (project + 1, absent),
    }


def test_every_id_of_an_erased_project_counts_as_stored(database: Client, project: int) -> None:
    database.command(
        "INSERT INTO erasures (project_id, id, kind, stage, version)"
        f" VALUES ({project}, generateUUIDv4(), 'project', 'done', 1)"
    )
    key = (project, uuid7(NOW).bytes)
    assert stored(database, [key]) == {key}


async def test_a_look_up_can_be_cancelled_while_it_waits() -> None:
    health = Health()
    unreachable = StoredIds(only(f"http://u:p@127.0.0.1:{free_port()}/svc"), health)
    waiting = asyncio.create_task(unreachable.among({0: [(7, bytes(16))]}))
    await eventually(lambda: not health.parts()[PART].ok)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert health.parts()[PART].ok
