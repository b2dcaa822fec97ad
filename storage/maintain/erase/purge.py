"""Deletes rows from disk, by mutations that rewrite the parts of one partition each.

A lightweight delete only masks rows until some merge. A mutation needs disk space for its partition, so of
large tables only a few run together. Of small ones all do: the server takes a look at every part of the table
for each, which costs more than the rewriting.
"""

import time
from collections.abc import Mapping
from typing import Final

from storage.clickhouse_diagnosis import RetryLater
from storage.client import Client
from storage.maintain.erase.sizes import table_bytes

_ROUNDS: Final = 20
SMALL_BYTES: Final = 4 << 30
"""Tables that have no more together are small."""
_AT_ONCE: Final = 4
"""Partitions of a large table that are rewritten concurrently."""
_PAUSE_SECONDS: Final = 0.1
_PATIENCE_SECONDS: Final = 60.0
PARTITIONS: Final = "SELECT _partition_id, count() FROM {table} WHERE {where} GROUP BY 1 ORDER BY 1"
DELETE: Final = "ALTER TABLE {table} DELETE IN PARTITION ID '{partition}' WHERE '{erasure}' != '' AND {where}"
UNDONE: Final = """
    SELECT count(), max(latest_fail_reason) FROM system.mutations
    WHERE database = currentDatabase() AND NOT is_done AND position(command, {mark:String}) > 0"""


class MutationFails(RetryLater):
    """A mutation keeps failing; it stays queued, and continues once its cause is fixed."""

    reason = "mutation"


def purge(client: Client, wheres: Mapping[str, str], erasure: str, *, once: bool = False) -> int:
    """Delete the rows of several tables that meet the table's condition; returns their number.

    Repeated while more of them are inserted, unless `once`. `erasure` marks the mutations, so that a run
    after a crash finds them. Raises ClickHouseError and MutationFails.
    """
    await_mutations(client, erasure)
    deleted = 0
    is_small = sum(table_bytes(client, wheres).values()) <= SMALL_BYTES
    for _ in range(1 if once else _ROUNDS):
        partitions = {table: _partitions(client, table, where) for table, where in wheres.items()}
        if not any(partitions.values()):
            break
        most = max(map(len, partitions.values()))
        step = most if is_small else _AT_ONCE
        for first in range(0, most, step):
            for table, counts in partitions.items():
                for partition, rows in counts[first : first + step]:
                    _delete(client, table, partition, wheres[table], erasure)
                    deleted += rows
            await_mutations(client, erasure)
    return deleted


def _partitions(client: Client, table: str, where: str) -> list[tuple[str, int]]:
    rows = client.query(PARTITIONS.format(table=table, where=where)).result_rows
    return [(str(partition), int(count)) for partition, count in rows]


def _delete(client: Client, table: str, partition: str, where: str, erasure: str) -> None:
    client.command(
        DELETE.format(table=table, partition=partition, erasure=erasure, where=where),
        settings={"mutations_sync": 0},
    )


def await_mutations(client: Client, mark: str) -> None:
    """Wait for the mutations whose text contains `mark`. Raises MutationFails.

    Large parts take longer than a request may.
    """
    failing_since: float | None = None
    while True:
        undone, reason = client.query(UNDONE, parameters={"mark": mark}).result_rows[0]
        if not undone:
            return
        if not reason:
            failing_since = None
        elif failing_since is None:
            failing_since = time.monotonic()
        elif time.monotonic() - failing_since > _PATIENCE_SECONDS:
            raise MutationFails(f"deleting fails: {' '.join(str(reason).split())[:300]}")
        time.sleep(_PAUSE_SECONDS)
