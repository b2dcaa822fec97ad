"""Deletes rows so that they leave the disk: mutations that write the parts anew, a partition at a time.

A lightweight delete only masks rows until a merge happens to come by. A mutation of a partition needs room for that partition, so not all
are begun at once.
"""

import time
from collections.abc import Mapping
from typing import Final

from storage.client import Client
from storage.diagnosis import NotNow

_ROUNDS: Final = 20
_AT_ONCE: Final = 4
"""Partitions of a table that are written anew at the same time."""
_PAUSE_SECONDS: Final = 0.1
_PATIENCE_SECONDS: Final = 60.0
_PARTITIONS: Final = "SELECT _partition_id, count() FROM {table} WHERE {where} GROUP BY 1 ORDER BY 1"
_UNDONE: Final = """
    SELECT count(), max(latest_fail_reason) FROM system.mutations
    WHERE database = currentDatabase() AND NOT is_done AND position(command, {mark:String}) > 0"""


class MutationFails(NotNow):
    """A mutation fails again and again; it stays queued, and goes on once its cause is mended."""

    reason = "mutation"


def purge(client: Client, wheres: Mapping[str, str], erasure: str, *, once: bool = False) -> int:
    """Delete the rows for which a table's condition holds, of several tables at once; returns how many there were.

    Repeated while more of them come in, unless `once`; nothing to delete costs a look. `erasure` marks the mutations: who was killed
    finds them under way next time. Raises ClickHouseError and MutationFails.
    """
    await_mutations(client, erasure)
    deleted = 0
    for _ in range(1 if once else _ROUNDS):
        partitions = {table: _partitions(client, table, where) for table, where in wheres.items()}
        if not any(partitions.values()):
            break
        for first in range(0, max(map(len, partitions.values())), _AT_ONCE):
            for table, found in partitions.items():
                for partition, rows in found[first : first + _AT_ONCE]:
                    _delete(client, table, partition, wheres[table], erasure)
                    deleted += rows
            await_mutations(client, erasure)
    return deleted


def _partitions(client: Client, table: str, where: str) -> list[tuple[str, int]]:
    rows = client.query(_PARTITIONS.format(table=table, where=where)).result_rows
    return [(str(partition), int(count)) for partition, count in rows]


def _delete(client: Client, table: str, partition: str, where: str, erasure: str) -> None:
    client.command(
        f"ALTER TABLE {table} DELETE IN PARTITION ID '{partition}' WHERE '{erasure}' != '' AND {where}",
        settings={"mutations_sync": 0},
    )


def await_mutations(client: Client, mark: str) -> None:
    """Wait for the mutations whose text holds `mark`: a part of a large table takes longer than an answer may. Raises MutationFails."""
    failing_since: float | None = None
    while True:
        undone, reason = client.query(_UNDONE, parameters={"mark": mark}).result_rows[0]
        if not undone:
            return
        if not reason:
            failing_since = None
        elif failing_since is None:
            failing_since = time.monotonic()
        elif time.monotonic() - failing_since > _PATIENCE_SECONDS:
            raise MutationFails(f"deleting fails: {' '.join(str(reason).split())[:300]}")
        time.sleep(_PAUSE_SECONDS)
