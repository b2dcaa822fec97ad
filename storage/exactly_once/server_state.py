"""Reads the server's state, which shows whether tokens of planned blocks still hold (`block_tokens`)."""

import re
from typing import Final
from zlib import crc32

from storage.client import Client, life
from storage.exactly_once.block_tokens import ServerMark, ServerState
from storage.tables.rollups import ROLLUPS

TABLES: Final = ("events", "payloads", *(rollup.table for rollup in ROLLUPS))
"""The tables that `ingest` feeds."""
_PAUSES: Final = "insert_pauses"
# Each insert gets the next block number of its table, or of each partition in a replicated table. A merged
# part keeps the last number of its parts.
STATE: Final = """
    SELECT
        t.name,
        t.engine_full,
        toInt64(if(t.engine LIKE 'Replicated%', p.numbers, p.last)),
        (SELECT count() FROM insert_pauses FINAL WHERE until > now64(3, 'UTC')),
        arraySort(p.partitions),
        toUnixTimestamp(now())
    FROM system.tables AS t LEFT JOIN
    (
        SELECT table, max(number) AS last, sum(number) AS numbers, groupArray(partition_id) AS partitions FROM
        (
            SELECT table, partition_id, max(max_block_number) AS number FROM system.parts
            WHERE database = currentDatabase() AND table IN {tables:Array(String)} GROUP BY table, partition_id
        )
        GROUP BY table
    ) AS p ON p.table = t.name
    WHERE t.database = currentDatabase() AND t.name IN {tables:Array(String)}"""
_WINDOW: Final = re.compile(r"replicated_deduplication_window\s*=\s*(\d+)")
_WINDOW_SECONDS: Final = re.compile(r"replicated_deduplication_window_seconds\s*=\s*(\d+)")
_REPLICATED_WINDOW, _REPLICATED_SECONDS = 1000, 3600


def server_state(client: Client) -> ServerState:
    """Read the state. Raises ClickHouseError."""
    # The server's life is read first: blocks that it counts later are counted since the mark.
    run = life(client)
    rows = client.query(STATE, parameters={"tables": [*TABLES, _PAUSES]}).result_rows
    last = {str(name): int(number) for name, _, number, *_ in rows}
    engines = {str(name): str(engine) for name, engine, *_ in rows}
    paused = any(int(row[3]) for row in rows)
    ages = {name: period(engine, int(rows[0][5])) for name, engine in engines.items()}
    replicated = sorted((str(row[0]), ages[row[0]], row[4]) for row in rows if ages[row[0]] is not None)
    return ServerState(
        ServerMark(
            crc32(f"{run}{replicated or ''}".encode()),
            tuple(last.get(table, 0) for table in TABLES),
            0 if paused else last.get(_PAUSES, 0) + 1,
        ),
        tuple(deduplication_window(engines.get(table, "")) for table in TABLES),
    )


def deduplication_window(engine: str) -> int:
    """How many inserts a table of this engine remembers, by its full definition."""
    match = _WINDOW.search(engine)
    if match:
        return int(match[1])
    return _REPLICATED_WINDOW if engine.startswith("Replicated") else 0


def period(engine: str, now: int) -> int | None:
    """The number of half token lifetimes up to `now` (Unix seconds); None for a table that isn't replicated.

    A replicated table remembers tokens for a limited time: it may have forgotten one of an earlier period.
    Nor do numbers of blocks say anything once a partition is missing or new.
    """
    if not engine.startswith("Replicated"):
        return None
    match = _WINDOW_SECONDS.search(engine)
    return now // max(1, (int(match[1]) if match else _REPLICATED_SECONDS) // 2)
