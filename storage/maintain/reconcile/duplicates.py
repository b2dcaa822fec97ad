"""Removes duplicate rows from `events` and `payloads`, without stopping the service.

Each row is addressed by part and offset. A part that is merged or changed meanwhile gets another name, so a
late deletion deletes nothing, and the row to keep is never addressed.
"""

import uuid
from collections.abc import Sequence
from datetime import date
from functools import partial
from typing import Any, Final

from storage.client import Client
from storage.exactly_once.unpacking import unpack
from storage.maintain.erase.purge import await_mutations, purge

TABLES: Final = ("events", "payloads")
Days = set[tuple[int, date]]
"""Pairs of a project and a day."""
_ROUNDS: Final = 1_000
IDS_AT_ONCE: Final = 10_000
"""All rows of a part must fit into one statement, because the statement renames the part."""
SURPLUS: Final = """
    SELECT _partition_id, _part, _part_offset, project_id, toDate(ts) FROM
    (
        SELECT _partition_id, _part, _part_offset, project_id, ts,
            row_number() OVER (PARTITION BY project_id, id ORDER BY _part, _part_offset) AS nth
        FROM {table}
        WHERE {twice}
    )
    WHERE nth > 1"""
TWICE: Final = """
    (project_id, id) IN (SELECT project_id, id FROM {table} GROUP BY project_id, id HAVING count() > 1 LIMIT {ids})"""
DELETE: Final = """
    ALTER TABLE {table} DELETE IN PARTITION ID '{partition}'
    WHERE '{mark}' != '' AND _part = '{part}' AND _part_offset IN ({rows})"""
_LONG: Final = {"mutations_sync": 0, "max_query_size": 64 << 20, "max_ast_elements": 10_000_000}
_BOUNDED: Final = {"max_bytes_before_external_group_by": 256 << 20, "max_execution_time": 3600}


def remove_duplicates(client: Client, table: str) -> tuple[int, Days]:
    """Delete all but one row of each event in `events` or `payloads`.

    Returns the number of deleted rows and their days; the caller repairs the rollups of these days.
    Idempotent, also if run concurrently. Raises ClickHouseError, NoConsistentRead and MutationFails.
    """
    removed, days, twice = 0, set[tuple[int, date]](), TWICE.format(table=table, ids=IDS_AT_ONCE)
    sql = SURPLUS.format(table=table, twice=twice)
    for _ in range(_ROUNDS):
        surplus = client.query(sql, settings=dict(_BOUNDED)).result_rows
        if not surplus:
            break
        removed += len(surplus)
        days |= {(int(project), day) for _, _, _, project, day in surplus}
        # A row may have the payloads of others.
        if table == "payloads" and unpack(client, twice, partial(_purge, client)):
            surplus = client.query(sql, settings=dict(_BOUNDED)).result_rows
        mark = str(uuid.uuid4())
        for (partition, part), rows in _by_part(surplus).items():
            text = ", ".join(map(str, rows))
            deletion = DELETE.format(table=table, partition=partition, part=part, rows=text, mark=mark)
            client.command(deletion, settings=dict(_LONG))
        await_mutations(client, mark)
    return removed, days


def _purge(client: Client, where: str) -> None:
    purge(client, {"payloads": where}, str(uuid.uuid4()))


def _by_part(surplus: Sequence[Sequence[Any]]) -> dict[tuple[str, str], list[int]]:
    """Offsets of rows by partition and part."""
    offsets: dict[tuple[str, str], list[int]] = {}
    for partition, part, row, *_ in surplus:
        offsets.setdefault((partition, part), []).append(int(row))
    return offsets
