"""Reads from the server what the tokens of planned blocks are judged by (`storage.writer.tokens`)."""

import re
from typing import Final
from zlib import crc32

from storage.client import Client, life
from storage.writer.rollups import ROLLUPS
from storage.writer.tokens import ServerMark, ServerState

TABLES: Final = ("events", "payloads", *(rollup.table for rollup in ROLLUPS))
"""The tables that `ingest` feeds."""
_PAUSES: Final = "insert_pauses"
# Each insert gets the next block number of its table. A merged part keeps the last number of its parts.
STATE: Final = """
    SELECT
        t.name,
        t.engine_full,
        toInt64(ifNull(p.last, 0)),
        (SELECT count() FROM insert_pauses FINAL WHERE until > now64(3, 'UTC'))
    FROM system.tables AS t LEFT JOIN
    (
        SELECT table, max(max_block_number) AS last FROM system.parts
        WHERE database = currentDatabase() AND table IN {tables:Array(String)} GROUP BY table
    ) AS p ON p.table = t.name
    WHERE t.database = currentDatabase() AND t.name IN {tables:Array(String)}"""
_WINDOW: Final = re.compile(r"replicated_deduplication_window\s*=\s*(\d+)")
_REPLICATED_WINDOW: Final = 1000


def server_state(client: Client) -> ServerState:
    """Read the state. Raises ClickHouseError."""
    # The server's life is read first: blocks that it counts later are counted since the mark.
    run = crc32(life(client).encode())
    rows = client.query(STATE, parameters={"tables": [*TABLES, _PAUSES]}).result_rows
    last = {str(name): int(number) for name, _, number, _ in rows}
    engines = {str(name): str(engine) for name, engine, *_ in rows}
    paused = any(int(count) for *_, count in rows)
    return ServerState(
        ServerMark(
            run,
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
