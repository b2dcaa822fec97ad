"""Inserts the missing rows of a block into each table exactly once, by comparing it with the tables.

The block's deduplication token isn't used: it may be wrong (ClickHouse recorded it before a part and was
killed) or expired (too many blocks since), or ClickHouse refuses the whole block because of some rows.
"""

import time
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from functools import partial
from typing import Final

import pyarrow as pa
from msgspec import Struct

from storage.clickhouse_diagnosis import RetryLater
from storage.client import Client
from storage.exactly_once.consistent_read import MIN_PAUSE_SECONDS
from storage.exactly_once.filling import STORED_EVENTS, STORED_PAYLOADS, Filling, keys_of, stored, wanted
from storage.exactly_once.insert_pauses import paused
from storage.exactly_once.rejections import EventKey
from storage.exactly_once.repair_rollups import repair_rollups
from storage.exactly_once.unpacking import unpack
from storage.tables.erased import ERASED_AMONG

FORGET: Final = """
    DELETE FROM payloads WHERE project_id = {project:UInt32} AND id = {id:UInt128} AND id NOT IN
        (SELECT id FROM events
         WHERE project_id = {project:UInt32} AND fingerprint = {fingerprint:UInt64} AND id = {id:UInt128})"""
FORGET_SOME: Final = "DELETE FROM payloads WHERE {where}"
TWICE: Final = f"""
    (project_id, id) IN
        (SELECT project_id, id FROM ({STORED_PAYLOADS})
         GROUP BY project_id, id HAVING count() > 1)"""  # noqa: S608 - our own text
_MANY: Final = 100


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
    return bool(stored(client, block, STORED_EVENTS) or stored(client, block, ERASED_AMONG))


def complete(client: Client, block: pa.Table, name: str, seconds: float = 0.0) -> Completion:
    """Insert a block's missing rows, except erased ones, and repair the rollups on its days.

    The rows are those that `events` or `payloads` lacks. Writers are asked to pause, and given `seconds`
    until those that have looked for pauses before have ended.

    An event that `payloads` has in a pack and once more keeps one row. Idempotent, also concurrently if both
    use the same `name`. Raises ClickHouseError, also if this process was frozen or the server was restarted in
    between, NoConsistentRead, and RefusesMost if the server refuses most of a large block.
    """
    # An event that was sent again may be in one block with itself.
    rows = {key: row for row, key in reversed([*enumerate(keys_of(block))])}
    # By their ids: another reading of the block may have its records in another order.
    chosen = [row for _, row in sorted(rows.items())]
    filling = Filling(client, block, chosen, name)
    with paused(client) as pause:
        if seconds:
            pause.extend(MIN_PAUSE_SECONDS)
            time.sleep(seconds)
        added, refused = filling.fill("events", chosen, pause)
        if len(block) > _MANY and len(refused) * 2 > len(block):
            raise RefusesMost(f"refuses {len(refused)} of {len(block)} rows: {next(iter(refused.values()))}")
        _forget_payloads(client, block, refused)
        # A completion that was killed in `unpack` leaves rows of a pack together with those that replace them.
        unpack(client, TWICE, partial(_forget, client), wanted(block))
        more, others = filling.fill("payloads", [row for row in chosen if row not in refused], pause)
    return Completion(
        added={"events": added, "payloads": more},
        repaired=repair_rollups(client, set(_days(block))),
        refused=[*(refused | others).items()],
    )


def missing(client: Client, block: pa.Table, today: date) -> Missing:
    """The rows that the tables lack of a block's events, unless these are erased or past their retention.

    Events of a block that is being inserted may count as missing. Raises ClickHouseError.
    """
    keys, moments = keys_of(block), block["ts"].to_pylist()
    erased = stored(client, block, ERASED_AMONG)

    def lacking(sql: str, days: str) -> set[EventKey]:
        known = stored(client, block, sql).keys() | erased.keys()
        return {
            (project, number[::-1])
            for (project, number), moment, kept in zip(keys, moments, block[days].to_pylist(), strict=True)
            if (project, number) not in known and not _is_expired(moment.date(), kept, today)
        }

    return Missing(
        events=lacking(STORED_EVENTS, "retention_days"), payloads=lacking(STORED_PAYLOADS, "payload_days")
    )


def _is_expired(day: date, days: int, today: date) -> bool:
    """Whether a row's partition, which holds a week, is past its retention (`storage.write.housekeeping`)."""
    return day - timedelta(days=day.weekday()) + timedelta(days=7 + days) <= today


def _forget_payloads(client: Client, block: pa.Table, rows: Iterable[int]) -> None:
    """Delete payloads that were inserted before `events` refused their rows.

    Another process may have inserted these rows meanwhile.
    """
    for row in rows:
        names = ("project_id", "fingerprint", "id")
        project, fingerprint, event = (block[name][row].as_py() for name in names)
        number = int.from_bytes(event, "little")
        # The others of its pack keep theirs.
        unpack(client, f"project_id = {project} AND id = toUInt128('{number}')", partial(_forget, client))
        client.command(FORGET, parameters={"project": project, "fingerprint": fingerprint, "id": number})


def _forget(client: Client, where: str) -> None:
    # A lightweight delete, since a writer has no right to see mutations.
    client.command(FORGET_SOME.format(where=where))


def _days(block: pa.Table) -> Iterator[tuple[int, date]]:
    for project, moment in zip(block["project_id"].to_pylist(), block["ts"].to_pylist(), strict=True):
        yield project, moment.date()
