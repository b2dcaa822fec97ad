"""Brings one block's rows into every table exactly once without relying on its token, by looking at what is there.

For a block whose token may say more than is true (ClickHouse wrote it before a part and was killed), or no longer anything (too
many blocks since), or that ClickHouse refuses as a whole because of some row.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from hashlib import blake2b
from typing import Any, Final
from uuid import UUID

import numpy as np
import pyarrow as pa
from clickhouse_connect.driver.external import ExternalData
from msgspec import Struct

from storage.client import INSERT_SETTINGS, ClickHouseError, Client, scalar, started_at
from storage.diagnosis import FailureKind, NotNow, diagnose
from storage.erase.erased import ERASED_AMONG
from storage.repair.consistent_read import in_a_pause
from storage.repair.repair_rollups import repair_rollups
from storage.writer.event_rows import EVENT_COLUMNS, PAYLOAD_COLUMNS

_WANTED: Final = np.dtype([("id", "V16"), ("fingerprint", "<u8"), ("project_id", "<u4")])
_STRUCTURE: Final = "id UInt128, fingerprint UInt64, project_id UInt32"
_EVENTS_THERE: Final = """
    SELECT project_id, id, retention_days FROM events
    WHERE project_id IN (SELECT project_id FROM wanted) AND fingerprint IN (SELECT fingerprint FROM wanted)
        AND ts >= {first:DateTime64(3, 'UTC')} AND ts <= {last:DateTime64(3, 'UTC')} AND id IN (SELECT id FROM wanted)"""
_PAYLOADS_THERE: Final = """
    SELECT project_id, id, payload_days FROM payloads
    WHERE project_id IN (SELECT project_id FROM wanted) AND id IN (SELECT id FROM wanted)"""
_MANY: Final = 100
_LIFE_SECONDS: Final = 4
# A database in memory, which each start of the server makes anew.
_LIFE: Final = "SELECT max(uuid) FROM system.databases WHERE name = 'INFORMATION_SCHEMA'"

Key = tuple[int, bytes]


class RefusesMost(NotNow):
    """Most rows are refused: that is no row's fault."""

    reason = "refusesMost"


class Completion(Struct):
    """What was missing: rows added by table, keys of rollups that differed, and the rows that were refused, with the reason."""

    added: dict[str, int]
    repaired: dict[str, int]
    refused: list[tuple[int, str]]

    @property
    def rows(self) -> dict[str, int]:
        """Everything that was put right, by table."""
        return {table: count for table, count in (self.added | self.repaired).items() if count}


class Presence(Struct, frozen=True):
    """How many rows of a block are in `events`, and whether some are there under another retention than the block gives them."""

    rows: int
    moved: bool


def presence(client: Client, block: pa.Table) -> Presence:
    """What is in `events` of a block. Raises ClickHouseError."""
    there = _there(client, block, _EVENTS_THERE)
    kept = [
        (there[key], days)
        for key, days in zip(_keys(block), block["retention_days"].to_pylist(), strict=True)
        if key in there
    ]
    return Presence(rows=len(kept), moved=any(found != days for found, days in kept))


def complete(client: Client, block: pa.Table, name: str) -> Completion:
    """Insert what is missing of a block, and wasn't erased, into `events` and `payloads`, and mend the rollups on its days.

    Repeatable, also by two at once that give the block the same `name`. Raises ClickHouseError, NeverQuiet, and RefusesMost when the server refuses most of a large block.
    """
    keys = _keys(block)
    # A server that was killed may remember tokens of rows that it lost: each of its lives has its own.
    name = f"{name}/{life(client)}"
    events, payloads = in_a_pause(
        client,
        ("events", "payloads"),
        lambda: (_there(client, block, _EVENTS_THERE), _there(client, block, _PAYLOADS_THERE)),
    )
    # What was erased is not missing, and comes again with every log that is read again.
    erased = _there(client, block, ERASED_AMONG)
    missing = [row for row, key in enumerate(keys) if key not in events and key not in erased]
    refused = _insert(client, "events", block.select(list(EVENT_COLUMNS)), missing, name)
    if len(block) > _MANY and len(refused) * 2 > len(block):
        raise RefusesMost(f"refuses {len(refused)} of {len(block)} rows: {refused[0][1]}")
    out = {row for row, _ in refused}
    lacking = [
        row for row, key in enumerate(keys) if key not in payloads and key not in erased and row not in out
    ]
    refused += _insert(client, "payloads", block.select(list(PAYLOAD_COLUMNS)), lacking, name)
    _forget_payloads(client, [keys[row] for row in out if keys[row] in payloads])
    added = {"events": len(missing) - len(out), "payloads": len(lacking)}
    return Completion(added=added, repaired=repair_rollups(client, set(_days(block)), name), refused=refused)


def life(client: Client) -> str:
    """What is the same whenever and by whoever it is asked until the server starts again, and then another."""
    made = UUID(str(scalar(client, _LIFE)))
    # A server that gives that database no number is told by its start, which two may round differently.
    return made.hex if made.int else str(int(started_at(client) // _LIFE_SECONDS))


def _keys(block: pa.Table) -> list[Key]:
    return list(zip(block["project_id"].to_pylist(), block["id"].to_pylist(), strict=True))


def _there(client: Client, block: pa.Table, sql: str) -> dict[Key, int]:
    wanted = np.empty(len(block), _WANTED)
    wanted["id"] = np.frombuffer(b"".join(block["id"].to_pylist()), "V16")
    wanted["fingerprint"] = block["fingerprint"].to_numpy()
    wanted["project_id"] = block["project_id"].to_numpy()
    external = ExternalData(file_name="wanted", data=wanted.tobytes(), fmt="RowBinary", structure=_STRUCTURE)
    moments: list[datetime] = block["ts"].to_pylist()
    limits: dict[str, Any] = {"first": min(moments), "last": max(moments)} if "{first" in sql else {}
    limits = {name: moment.replace(tzinfo=UTC) for name, moment in limits.items()}
    answer = client.query(sql, parameters=limits, external_data=external)
    return {
        (int(project), int(number).to_bytes(16, "little")): int(days)
        for project, number, days in answer.result_rows
    }


def _insert(
    client: Client, table: str, rows: pa.Table, wanted: list[int], name: str
) -> list[tuple[int, str]]:
    """Insert some rows; those that are refused are found by halving and returned with the reason."""
    if not wanted:
        return []
    try:
        digest = blake2b(np.array(wanted, "<u4").tobytes(), digest_size=16).hexdigest()
        settings = {**INSERT_SETTINGS, "insert_deduplication_token": f"{name}/{table}/{digest}"}
        client.insert_arrow(table, rows.take(wanted), settings=settings)
    except ClickHouseError as error:
        trouble = diagnose(error)
        if trouble.kind is not FailureKind.REFUSED:
            raise
        if len(wanted) == 1:
            return [(wanted[0], trouble.sentence)]
        middle = len(wanted) // 2
        return _insert(client, table, rows, wanted[:middle], name) + _insert(
            client, table, rows, wanted[middle:], name
        )
    return []


def _forget_payloads(client: Client, keys: list[Key]) -> None:
    """Take back payloads that were inserted before `events` refused their rows."""
    for project, number in keys:
        client.command(
            "DELETE FROM payloads WHERE project_id = {project:UInt32} AND id = {id:UInt128}",
            parameters={"project": project, "id": int.from_bytes(number, "little")},
        )


def _days(block: pa.Table) -> Iterator[tuple[int, date]]:
    for project, moment in zip(block["project_id"].to_pylist(), block["ts"].to_pylist(), strict=True):
        yield project, moment.date()
