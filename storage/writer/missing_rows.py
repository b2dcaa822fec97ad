"""Inserts the missing rows of a block into each table exactly once, by comparing it with the tables instead of using its token.

Used if the block's deduplication token may be wrong (ClickHouse recorded it before a part and was killed) or expired (too many blocks
since), or if ClickHouse refuses the whole block because of some rows.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from hashlib import blake2b
from typing import Any, Final

import numpy as np
import pyarrow as pa
from clickhouse_connect.driver.external import ExternalData
from msgspec import Struct

from storage.client import INSERT_SETTINGS, ClickHouseError, Client
from storage.diagnosis import FailureKind, RetryLater, diagnose
from storage.erased import ERASED_AMONG
from storage.replicas import begin_session
from storage.writer.consistent_read import MIN_PAUSE_SECONDS, read_consistently
from storage.writer.event_rows import EVENT_COLUMNS, PAYLOAD_COLUMNS
from storage.writer.insert_pauses import Pause, paused
from storage.writer.rejections import EventKey
from storage.writer.repair_rollups import SESSION_SECONDS, repair_rollups

WANTED: Final = np.dtype([("id", "V16"), ("fingerprint", "<u8"), ("project_id", "<u4")])
_STRUCTURE: Final = "id UInt128, fingerprint UInt64, project_id UInt32"
STORED_EVENTS: Final = """
    SELECT project_id, id, retention_days FROM events
    WHERE project_id IN (SELECT project_id FROM wanted) AND fingerprint IN (SELECT fingerprint FROM wanted)
        AND ts >= {first:DateTime64(3, 'UTC')} AND ts <= {last:DateTime64(3, 'UTC')} AND id IN (SELECT id FROM wanted)"""
STORED_PAYLOADS: Final = """
    SELECT project_id, id, payload_days FROM payloads
    WHERE project_id IN (SELECT project_id FROM wanted) AND id IN (SELECT id FROM wanted)"""
_STORED: Final = {"events": STORED_EVENTS, "payloads": STORED_PAYLOADS}
_COLUMNS: Final = {"events": list(EVENT_COLUMNS), "payloads": list(PAYLOAD_COLUMNS)}
FORGET: Final = """
    DELETE FROM payloads WHERE project_id = {project:UInt32} AND id = {id:UInt128} AND id NOT IN
        (SELECT id FROM events WHERE project_id = {project:UInt32} AND fingerprint = {fingerprint:UInt64} AND id = {id:UInt128})"""
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
    return bool(_stored(client, block, STORED_EVENTS) or _stored(client, block, ERASED_AMONG))


def complete(client: Client, block: pa.Table, name: str, seconds: float = 0.0) -> Completion:
    """Insert a block's missing rows, except erased ones, into `events` and `payloads`, and repair the rollups on its days.

    Writers are asked to pause, and given `seconds` until those that have looked for pauses before have ended.

    Idempotent, also concurrently if both use the same `name`. Raises ClickHouseError, also if this process stood still or the
    server was started in between, NoConsistentRead, and RefusesMost if the server refuses most of a large block.
    """
    # An event that was sent again may be in one block with itself.
    rows = {key: row for row, key in reversed([*enumerate(_keys(block))])}
    # By their ids: another reading of the block may have its records in another order.
    wanted = [row for _, row in sorted(rows.items())]
    filling = Filling(client, block, wanted, name)
    with paused(client) as pause:
        if seconds:
            pause.extend(MIN_PAUSE_SECONDS)
            time.sleep(seconds)
        added, refused = filling.fill("events", wanted, pause)
        if len(block) > _MANY and len(refused) * 2 > len(block):
            raise RefusesMost(f"refuses {len(refused)} of {len(block)} rows: {next(iter(refused.values()))}")
        _forget_payloads(client, block, refused)
        more, others = filling.fill("payloads", [row for row in wanted if row not in refused], pause)
    return Completion(
        added={"events": added, "payloads": more},
        repaired=repair_rollups(client, set(_days(block))),
        refused=[*(refused | others).items()],
    )


class Filling:
    """Inserts the rows of a block that a table lacks.

    Another process may do the same, and the server take other rows from it: those that it refuses here it may have taken there.
    So an insert's token names all rows that were missing, not those that it has. Of two inserts after the same comparison one is
    taken, and both compare again until nothing is missing.
    """

    def __init__(self, client: Client, block: pa.Table, rows: list[int], name: str) -> None:
        self._client = client
        self._block = block
        keys = _keys(block)
        self._keys = {row: keys[row] for row in rows}
        self._name = name

    def fill(self, table: str, rows: list[int], pause: Pause) -> tuple[int, dict[int, str]]:
        """Insert those of some rows that are missing; returns how many were, and those that are refused, with the reason."""
        halves, refused, lacked, taken = [rows], dict[int, str](), set[int](), Counter[str]()
        while True:
            session, missing = self._compare(table, pause)
            lacked |= missing.keys() & rows
            # What was refused here may be stored by now.
            refused = {row: reason for row, reason in refused.items() if row in missing}
            left = [[row for row in half if row in missing and row not in refused] for half in halves]
            halves = [half for half in left if half]
            if not halves:
                return len(lacked - refused.keys()), refused
            digest = blake2b(repr([*missing.values()]).encode(), digest_size=16).hexdigest()
            # A killed server may remember the token of rows that it lost: they are still missing then, and the next token is another one.
            token = f"{self._name}/{table}/{digest}/{taken[digest]}"
            settings = {**INSERT_SETTINGS, **session, "insert_deduplication_token": token}
            refused |= self._insert_some(table, halves, settings)
            taken[digest] += 1

    def _compare(self, table: str, pause: Pause) -> tuple[Mapping[str, Any], dict[int, Key]]:
        """A session, and all rows that are missing."""

        def read(_: int) -> tuple[Mapping[str, Any], dict[Key, int]]:
            session = begin_session(self._client, SESSION_SECONDS)
            return session, _stored(self._client, self._block, _STORED[table], session)

        session, known = read_consistently((self._client,), (table,), read, pause=pause)
        # Erased events are not missing, but recur whenever a topic is re-read.
        known |= _stored(self._client, self._block, ERASED_AMONG, session)
        return session, {row: key for row, key in self._keys.items() if key not in known}

    def _insert_some(self, table: str, halves: list[list[int]], settings: dict[str, Any]) -> dict[int, str]:
        """Insert the last of `halves`. What is refused is halved until something is taken; returns the rows that are refused alone."""
        rows, refused = self._block.select(_COLUMNS[table]), dict[int, str]()
        while halves:
            try:
                self._client.insert_arrow(table, rows.take(halves[-1]), settings=settings)
                break
            except ClickHouseError as error:
                failure = diagnose(error)
                if failure.kind is not FailureKind.REFUSED:
                    raise
            half = halves.pop()
            middle = len(half) // 2
            if middle:
                halves += [half[middle:], half[:middle]]
            else:
                refused[half[0]] = failure.sentence
        return refused


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
        events=lacking(STORED_EVENTS, "retention_days"), payloads=lacking(STORED_PAYLOADS, "payload_days")
    )


def _is_expired(day: date, days: int, today: date) -> bool:
    """Whether a row's partition, which holds a week, is past its retention (`storage.writer.housekeeping`)."""
    return day - timedelta(days=day.weekday()) + timedelta(days=7 + days) <= today


def _keys(block: pa.Table) -> list[Key]:
    return list(zip(block["project_id"].to_pylist(), block["id"].to_pylist(), strict=True))


def _stored(
    client: Client, block: pa.Table, sql: str, session: Mapping[str, Any] | None = None
) -> dict[Key, int]:
    wanted = np.empty(len(block), WANTED)
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


def _forget_payloads(client: Client, block: pa.Table, rows: Iterable[int]) -> None:
    """Delete payloads that were inserted before `events` refused their rows; meanwhile another process may have inserted these."""
    for row in rows:
        names = ("project_id", "fingerprint", "id")
        project, fingerprint, number = (block[name][row].as_py() for name in names)
        client.command(
            FORGET,
            parameters={
                "project": project,
                "fingerprint": fingerprint,
                "id": int.from_bytes(number, "little"),
            },
        )


def _days(block: pa.Table) -> Iterator[tuple[int, date]]:
    for project, moment in zip(block["project_id"].to_pylist(), block["ts"].to_pylist(), strict=True):
        yield project, moment.date()
