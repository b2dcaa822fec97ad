"""Unpacks packs of payloads before some of their events are deleted: each event gets a separate row."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from clickhouse_connect.driver.external import ExternalData

from schemas.errors import BadPayload
from storage.client import Client
from storage.exactly_once.filling import STORED_ALONE, Filling
from storage.exactly_once.insert_pauses import paused
from storage.tables.event_columns import joined, uint128
from storage.tables.packs import unpacked

log = logging.getLogger(__name__)

PACKS: Final = """
    SELECT DISTINCT project_id, pack FROM payloads WHERE pack != 0 AND {where} ORDER BY project_id, pack LIMIT 2000"""
CONTENT: Final = """
    SELECT payload FROM payloads
    WHERE project_id = {project:UInt32} AND id IN {packs:Array(UInt128)} AND pack = id"""
MEMBERS: Final = """
    SELECT id, toUnixTimestamp64Milli(ts), payload_days FROM payloads
    WHERE project_id = {project:UInt32} AND id IN (SELECT id FROM wanted) AND pack IN {packs:Array(UInt128)}"""
_AT_ONCE: Final = 50


def unpack(
    client: Client, where: str, delete: Callable[[str], object], external: ExternalData | None = None
) -> bool:
    """Replace all packs of which an event's row meets a condition. False if there are none.

    The condition may read an `external` table. `delete` deletes the rows of `payloads` that meet a condition.
    Each event is inserted before its row of the pack is deleted, unless it is erased or can't be read.
    Idempotent, also if run concurrently; a caller that is killed in between must find the packs again. Raises
    ClickHouseError and NoConsistentRead, and whatever `delete` raises.
    """
    are_any = False
    while found := client.query(PACKS.format(where=where), external_data=external).result_rows:
        are_any, by_project = True, dict[int, list[int]]()
        for project, pack in found:
            by_project.setdefault(int(project), []).append(int(pack))
        for project, packs in by_project.items():
            for first in range(0, len(packs), _AT_ONCE):
                _insert(client, project, packs[first : first + _AT_ONCE])
            numbers = ", ".join(f"toUInt128('{pack}')" for pack in packs)
            delete(f"project_id = {project} AND pack IN ({numbers})")
    return are_any


def _insert(client: Client, project: int, packs: Sequence[int]) -> None:
    parameters: dict[str, Any] = {"project": project, "packs": packs}
    payloads: dict[int, bytes] = {}
    content = client.query(CONTENT, parameters=parameters, column_formats={"payload": "bytes"})
    for (pack,) in content.result_rows:
        try:
            events = unpacked(pack)
        except BadPayload as error:
            log.warning(
                "dropping an unreadable payload pack of project %d: %s",
                project,
                error,
                extra={"event": "pack_dropped"},
            )
        else:
            payloads |= {int.from_bytes(event, "big"): payload for event, payload in events.items()}
    ids = b"".join(event.to_bytes(16, "little") for event in payloads)
    wanted = ExternalData(file_name="wanted", data=ids, fmt="RowBinary", structure="id UInt128")
    found = client.query(MEMBERS, parameters=parameters, external_data=wanted).result_rows
    members: dict[int, tuple[Any, ...]] = {int(row[0]): tuple(row) for row in found}
    if members:
        rows = _rows(project, sorted(members.values()), payloads)
        with paused(client) as pause:
            every = [*range(len(rows))]
            Filling(client, rows, every, "unpack", {"payloads": STORED_ALONE}).fill("payloads", every, pause)


def _rows(project: int, members: Sequence[Sequence[Any]], payloads: Mapping[int, bytes]) -> pa.Table:
    """Rows of `payloads`, and the fingerprint 0 that their look-up wants."""
    numbers, moments, days = zip(*members, strict=True)
    return pa.table(
        {
            "project_id": pa.array(np.full(len(numbers), project, "u4")),
            "fingerprint": pa.array(np.zeros(len(numbers), "u8")),
            "id": uint128([number.to_bytes(16, "big") for number in numbers]),
            "ts": pa.array(np.array(moments, "datetime64[ms]")),
            "payload": joined([payloads[number] for number in numbers]),
            "payload_days": pa.array(np.array(days, "u2")),
            "pack": uint128([bytes(16)] * len(numbers)),
        }
    )
