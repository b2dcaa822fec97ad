"""Whether the server still knows the deduplication token of a block: each table remembers those of its last blocks only."""

import re
from typing import Final

from storage.client import Client
from storage.repair.rollups import ROLLUPS

_WINDOW: Final = re.compile(r"replicated_deduplication_window\s*=\s*(\d+)")
_REPLICATED_WINDOW: Final = 1000
_CLOCK_SECONDS: Final = 10
_SHARE: Final = 2
"""Blocks of others may arrive between the question and the insert: half of a window must be left."""
_TABLES: Final = ("events", "payloads", *(rollup.table for rollup in ROLLUPS))
# A part from before the moment ends at or before the number that was current then, so that never too few are counted; where merges
# have left none, all blocks of the table are.
_BLOCKS: Final = """
    SELECT t.name, t.engine_full, toInt64(ifNull(p.blocks, 0))
    FROM system.tables AS t LEFT JOIN
    (
        SELECT
            table,
            max(max_block_number) - maxIf(
                max_block_number,
                toInt64(toUnixTimestamp(modification_time)) < toInt64(toUnixTimestamp(now())) - {seconds:Int64}
            ) AS blocks
        FROM system.parts WHERE database = currentDatabase() GROUP BY table
    ) AS p ON p.table = t.name
    WHERE t.database = currentDatabase() AND t.name IN {tables:Array(String)}"""


def forgotten(client: Client, seconds: float) -> bool:
    """Whether a token given `seconds` ago may be forgotten by one of the tables that `ingest` feeds. Raises ClickHouseError.

    True may be said too early, never too late.
    """
    rows = client.query(
        _BLOCKS, parameters={"seconds": int(max(0.0, seconds)) + _CLOCK_SECONDS, "tables": list(_TABLES)}
    ).result_rows
    return any(int(blocks) * _SHARE > _window(str(engine)) for _, engine, blocks in rows)


def _window(engine: str) -> int:
    found = _WINDOW.search(engine)
    if found:
        return int(found[1])
    return _REPLICATED_WINDOW if engine.startswith("Replicated") else 0
