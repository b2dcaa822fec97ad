"""Inserts the rows of a block that a table lacks, found by their ids, each exactly once."""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Set
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any, Final

import numpy as np
import pyarrow as pa
from clickhouse_connect.driver.external import ExternalData

from storage.clickhouse_diagnosis import FailureKind, diagnose
from storage.client import INSERT_SETTINGS, ClickHouseError, Client
from storage.exactly_once.consistent_read import read_consistently
from storage.exactly_once.insert_pauses import Pause
from storage.exactly_once.sessions import ComparisonSession
from storage.tables.erased import ERASED_AMONG
from storage.tables.event_columns import EVENT_COLUMNS, PAYLOAD_COLUMNS

WANTED: Final = np.dtype([("id", "V16"), ("fingerprint", "<u8"), ("project_id", "<u4")])
_STRUCTURE: Final = "id UInt128, fingerprint UInt64, project_id UInt32"
STORED_EVENTS: Final = """
    SELECT project_id, id, retention_days FROM events
    WHERE project_id IN (SELECT project_id FROM wanted) AND fingerprint IN (SELECT fingerprint FROM wanted)
        AND ts >= {first:DateTime64(3, 'UTC')} AND ts <= {last:DateTime64(3, 'UTC')}
        AND id IN (SELECT id FROM wanted)"""
STORED_PAYLOADS: Final = """
    SELECT project_id, id, payload_days FROM payloads
    WHERE project_id IN (SELECT project_id FROM wanted) AND id IN (SELECT id FROM wanted)"""
STORED_ALONE: Final = f"{STORED_PAYLOADS} AND pack = 0"
_STORED: Final = {"events": STORED_EVENTS, "payloads": STORED_PAYLOADS}
_COLUMNS: Final = {"events": list(EVENT_COLUMNS), "payloads": list(PAYLOAD_COLUMNS)}

Key = tuple[int, bytes]
"""A project and the id's bytes as ClickHouse has them, in reverse."""


class Filling:
    """Inserts the rows of a block that a table lacks.

    Another process may do the same, and the server may take other rows from it: it may have taken there the
    rows that it refuses here. So an insert's token names all rows that were missing, not those that the
    insert has. Of two inserts after the same comparison the server takes one, and both processes compare
    again until nothing is missing. The server knows a token in one partition of the table, so an insert has
    rows of one partition, and its token names those that were missing there.

    `stored` finds the rows of a table, by default all.
    """

    def __init__(
        self,
        client: Client,
        block: pa.Table,
        rows: list[int],
        name: str,
        stored: Mapping[str, str] = _STORED,
    ) -> None:
        self._client = client
        self._block = block
        keys = keys_of(block)
        self._keys = {row: keys[row] for row in rows}
        self._name = name
        self._stored = stored
        self._session = ComparisonSession(client)

    def fill(self, table: str, rows: list[int], pause: Pause) -> tuple[int, dict[int, str]]:
        """Insert those of some rows that are missing.

        Returns the number of missing rows without the refused ones, and the refused rows with the reason.
        """
        partition_of = dict(zip(self._keys, self._partitions(table), strict=True))
        # Of each partition the rows to insert, in the pieces to which refusals halve them.
        pieces: dict[Hashable, list[list[int]]] = {}
        for row in rows:
            pieces.setdefault(partition_of[row], [[]])[0].append(row)
        refused, lacked, taken = dict[int, str](), set[int](), Counter[str]()
        while True:
            self._session.hold_back(pause)
            try:
                session, missing = self._compare(table, pause)
                lacked |= missing.keys() & rows
                # Rows refused here may be stored by now.
                refused = {row: reason for row, reason in refused.items() if row in missing}
                pieces = _left(pieces, missing.keys() - refused.keys())
                if not pieces:
                    return len(lacked - refused.keys()), refused
                lacking: dict[Hashable, list[Key]] = {partition: [] for partition in pieces}
                for row, key in missing.items():
                    lacking.get(partition_of[row], []).append(key)
                for partition, halves in pieces.items():
                    digest = blake2b(repr(lacking[partition]).encode(), digest_size=16).hexdigest()
                    # A killed server may remember the token of rows that it lost: they are still missing then, and
                    # the next token is another one.
                    token = f"{self._name}/{table}/{digest}/{taken[digest]}"
                    settings = {**INSERT_SETTINGS, **session, "insert_deduplication_token": token}
                    self._insert_some(table, halves, refused, settings)
                    taken[digest] += 1
            except ClickHouseError as error:
                self._session.stretch(error)

    def _compare(self, table: str, pause: Pause) -> tuple[Mapping[str, Any], dict[int, Key]]:
        """A session, and all rows that are missing."""

        def read(_: int) -> tuple[Mapping[str, Any], dict[Key, int]]:
            session = self._session.begin()
            return session, stored(self._client, self._block, self._stored[table], session)

        session, known = read_consistently((self._client,), (table,), read, pause=pause)
        # Erased events are not missing, but recur whenever a topic is re-read.
        known |= stored(self._client, self._block, ERASED_AMONG, session)
        return session, {row: key for row, key in self._keys.items() if key not in known}

    def _partitions(self, table: str) -> Iterator[Hashable]:
        """The partition of each row, as the table has them: a week and the days that the row is kept."""
        days = "payload_days" if table == "payloads" else "retention_days"
        moments, kept = self._block["ts"].to_pylist(), self._block[days].to_pylist()
        return ((moments[row].date() - timedelta(moments[row].weekday()), kept[row]) for row in self._keys)

    def _insert_some(
        self, table: str, halves: list[list[int]], refused: dict[int, str], settings: dict[str, Any]
    ) -> None:
        """Insert the last of `halves`, and add the rows that are refused alone to `refused`.

        Halves that the server refuses are halved until it takes something.
        """
        rows = self._block.select(_COLUMNS[table])
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


def _left(pieces: Mapping[Hashable, list[list[int]]], wanted: Set[int]) -> dict[Hashable, list[list[int]]]:
    """The wanted rows of the pieces; what has none is left out."""
    left: dict[Hashable, list[list[int]]] = {}
    for partition, halves in pieces.items():
        kept = [[row for row in half if row in wanted] for half in halves]
        if any(kept):
            left[partition] = [half for half in kept if half]
    return left


def keys_of(block: pa.Table) -> list[Key]:
    """The key of each row."""
    return list(zip(block["project_id"].to_pylist(), block["id"].to_pylist(), strict=True))


def wanted(block: pa.Table) -> ExternalData:
    """The table `wanted`: the events of a block."""
    rows = np.empty(len(block), WANTED)
    rows["id"] = np.frombuffer(b"".join(block["id"].to_pylist()), "V16")
    rows["fingerprint"] = block["fingerprint"].to_numpy()
    rows["project_id"] = block["project_id"].to_numpy()
    return ExternalData(file_name="wanted", data=rows.tobytes(), fmt="RowBinary", structure=_STRUCTURE)


def stored(
    client: Client, block: pa.Table, sql: str, session: Mapping[str, Any] | None = None
) -> dict[Key, int]:
    """The events of a block that a statement finds, with its third column. Raises ClickHouseError."""
    moments: list[datetime] = block["ts"].to_pylist()
    limits: dict[str, Any] = {"first": min(moments), "last": max(moments)} if "{first" in sql else {}
    limits = {name: moment.replace(tzinfo=UTC) for name, moment in limits.items()}
    answer = client.query(sql, parameters=limits, external_data=wanted(block), settings=dict(session or {}))
    return {
        (int(project), int(number).to_bytes(16, "little")): int(days)
        for project, number, days in answer.result_rows
    }
