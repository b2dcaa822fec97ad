"""Inserts the missing rows of a block into each table exactly once, by comparing it with the tables instead of using its token.

Used if the block's deduplication token may be wrong (ClickHouse recorded it before a part and was killed) or expired (too many blocks
since), or if ClickHouse refuses the whole block because of some rows.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from hashlib import blake2b
from typing import Any, Final

import numpy as np
import pyarrow as pa
from clickhouse_connect.driver.external import ExternalData
from msgspec import Struct

from storage.client import INSERT_SETTINGS, ClickHouseError, Client, begin_session, life
from storage.diagnosis import FailureKind, RetryLater, diagnose
from storage.erase.erased import ERASED_AMONG
from storage.repair.consistent_read import read_in_pause
from storage.repair.repair_rollups import SESSION_SECONDS, repair_rollups
from storage.writer.blocks import EventKey
from storage.writer.event_rows import EVENT_COLUMNS, PAYLOAD_COLUMNS

_WANTED: Final = np.dtype([("id", "V16"), ("fingerprint", "<u8"), ("project_id", "<u4")])
_STRUCTURE: Final = "id UInt128, fingerprint UInt64, project_id UInt32"
_STORED_EVENTS: Final = """
    SELECT project_id, id, retention_days FROM events
    WHERE project_id IN (SELECT project_id FROM wanted) AND fingerprint IN (SELECT fingerprint FROM wanted)
        AND ts >= {first:DateTime64(3, 'UTC')} AND ts <= {last:DateTime64(3, 'UTC')} AND id IN (SELECT id FROM wanted)"""
_STORED_PAYLOADS: Final = """
    SELECT project_id, id, payload_days FROM payloads
    WHERE project_id IN (SELECT project_id FROM wanted) AND id IN (SELECT id FROM wanted)"""
_MANY: Final = 100

Key = tuple[int, bytes]


class RefusesMost(RetryLater):
    """Most rows are refused, so the cause is not a single row."""

    reason = "refusesMost"


class Missing(Struct, frozen=True):
    """The events of a block that a table lacks, by table."""

    events: set[EventKey]
    payloads: set[EventKey]


class Completion(Struct):
    """Rows added by table, differing rollup keys that were repaired, and refused rows with the reason."""

    added: dict[str, int]
    repaired: dict[str, int]
    refused: list[tuple[int, str]]

    @property
    def rows(self) -> dict[str, int]:
        """All repairs, by table."""
        return {table: count for table, count in (self.added | self.repaired).items() if count}


def any_known(client: Client, block: pa.Table) -> bool:
    """Whether any event of a block is in `events`, or was and is erased. Raises ClickHouseError."""
    return bool(_stored(client, block, _STORED_EVENTS) or _stored(client, block, ERASED_AMONG))


def complete(client: Client, block: pa.Table, name: str) -> Completion:
    """Insert a block's missing rows, except erased ones, into `events` and `payloads`, and repair the rollups on its days.

    Idempotent, also concurrently if both use the same `name`. Raises ClickHouseError, also if this process stood still or the
    server was started in between, NoConsistentRead, and RefusesMost if the server refuses most of a large block.
    """
    keys = _keys(block)

    def compare(_: int) -> tuple[Mapping[str, Any], dict[Key, int], dict[Key, int]]:
        session = begin_session(client, SESSION_SECONDS)
        return (
            session,
            _stored(client, block, _STORED_EVENTS, session),
            _stored(client, block, _STORED_PAYLOADS, session),
        )

    session, events, payloads = read_in_pause(client, ("events", "payloads"), compare)
    # Erased events are not missing, but recur whenever a topic is re-read.
    erased = _stored(client, block, ERASED_AMONG, session)
    # A killed server may remember tokens of rows that it lost, so tokens differ by server start.
    name = f"{name}/{life(client)}"
    # An event that was sent again may be in one block with itself.
    rows = {key: row for row, key in reversed([*enumerate(keys)]) if key not in erased}
    # By their ids: another reading of the block may have its records in another order.
    new = [row for key, row in sorted(rows.items()) if key not in events]
    refused = _insert(client, "events", block.select(list(EVENT_COLUMNS)), new, name, session)
    if len(block) > _MANY and len(refused) * 2 > len(block):
        raise RefusesMost(f"refuses {len(refused)} of {len(block)} rows: {refused[0][1]}")
    out = {row for row, _ in refused}
    lacking = [row for key, row in sorted(rows.items()) if key not in payloads and row not in out]
    refused += _insert(client, "payloads", block.select(list(PAYLOAD_COLUMNS)), lacking, name, session)
    _forget_payloads(client, [keys[row] for row in out if keys[row] in payloads])
    added = {"events": len(new) - len(out), "payloads": len(lacking)}
    return Completion(added=added, repaired=repair_rollups(client, set(_days(block))), refused=refused)


def missing(client: Client, block: pa.Table, today: date) -> Missing:
    """What the tables lack of a block's events that are neither erased nor past their retention. Raises ClickHouseError.

    Events of a block that is being inserted may count as missing.
    """
    keys, moments = _keys(block), block["ts"].to_pylist()
    erased = _stored(client, block, ERASED_AMONG)

    def lacking(sql: str, days: str) -> set[EventKey]:
        known = _stored(client, block, sql).keys() | erased.keys()
        return {
            (project, number[::-1])
            for (project, number), moment, kept in zip(keys, moments, block[days].to_pylist(), strict=True)
            if (project, number) not in known and not _is_expired(moment.date(), kept, today)
        }

    return Missing(
        events=lacking(_STORED_EVENTS, "retention_days"), payloads=lacking(_STORED_PAYLOADS, "payload_days")
    )


def _is_expired(day: date, days: int, today: date) -> bool:
    """Whether a row's partition, which holds a week, is past its retention (`storage.writer.housekeeping`)."""
    return day - timedelta(days=day.weekday()) + timedelta(days=7 + days) <= today


def _keys(block: pa.Table) -> list[Key]:
    return list(zip(block["project_id"].to_pylist(), block["id"].to_pylist(), strict=True))


def _stored(
    client: Client, block: pa.Table, sql: str, session: Mapping[str, Any] | None = None
) -> dict[Key, int]:
    wanted = np.empty(len(block), _WANTED)
    wanted["id"] = np.frombuffer(b"".join(block["id"].to_pylist()), "V16")
    wanted["fingerprint"] = block["fingerprint"].to_numpy()
    wanted["project_id"] = block["project_id"].to_numpy()
    external = ExternalData(file_name="wanted", data=wanted.tobytes(), fmt="RowBinary", structure=_STRUCTURE)
    moments: list[datetime] = block["ts"].to_pylist()
    limits: dict[str, Any] = {"first": min(moments), "last": max(moments)} if "{first" in sql else {}
    limits = {name: moment.replace(tzinfo=UTC) for name, moment in limits.items()}
    answer = client.query(sql, parameters=limits, external_data=external, settings=dict(session or {}))
    return {
        (int(project), int(number).to_bytes(16, "little")): int(days)
        for project, number, days in answer.result_rows
    }


def _insert(
    client: Client, table: str, rows: pa.Table, wanted: list[int], name: str, session: Mapping[str, Any]
) -> list[tuple[int, str]]:
    """Insert some rows, in the order of their ids; refused rows are found by bisection and returned with the reason."""
    if not wanted:
        return []
    try:
        chosen = rows.take(wanted)
        digest = blake2b(repr(_keys(chosen)).encode(), digest_size=16).hexdigest()
        settings = {**INSERT_SETTINGS, **session, "insert_deduplication_token": f"{name}/{table}/{digest}"}
        client.insert_arrow(table, chosen, settings=settings)
    except ClickHouseError as error:
        failure = diagnose(error)
        if failure.kind is not FailureKind.REFUSED:
            raise
        if len(wanted) == 1:
            return [(wanted[0], failure.sentence)]
        middle = len(wanted) // 2
        return _insert(client, table, rows, wanted[:middle], name, session) + _insert(
            client, table, rows, wanted[middle:], name, session
        )
    return []


def _forget_payloads(client: Client, keys: list[Key]) -> None:
    """Delete payloads that were inserted before `events` refused their rows."""
    for project, number in keys:
        client.command(
            "DELETE FROM payloads WHERE project_id = {project:UInt32} AND id = {id:UInt128}",
            parameters={"project": project, "id": int.from_bytes(number, "little")},
        )


def _days(block: pa.Table) -> Iterator[tuple[int, date]]:
    for project, moment in zip(block["project_id"].to_pylist(), block["ts"].to_pylist(), strict=True):
        yield project, moment.date()
