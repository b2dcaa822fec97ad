"""What a change of grouping reads of a project: its issues, all stored events, and what an earlier change merged."""

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from clickhouse_connect.driver.external import ExternalData
from msgspec import Struct

from schemas.errors import BadPayload
from schemas.ids import parse_hex64
from storage.client import Client
from storage.packs import unpacked

ISSUES: Final = """
    SELECT issue_id, fingerprints, error_type, message, events FROM issues FINAL
    WHERE project_id = {project:UInt32} AND deleted = 0 AND merged_into = 0"""
HOLDERS: Final = """
    SELECT id, pack, payload FROM payloads
    WHERE project_id = {project:UInt32} AND id > {after:UInt128} AND (pack = 0 OR pack = id) ORDER BY id LIMIT 200"""
"""Payloads with content, in pages: each of one event or of up to 128."""
EVENTS: Final = """
    SELECT id, fingerprint, sdk, toUnixTimestamp64Milli(received) FROM events
    WHERE project_id = {project:UInt32} AND id IN (SELECT id FROM wanted)
        AND received > fromUnixTimestamp64Milli({after:Int64}) AND received <= fromUnixTimestamp64Milli({until:Int64})"""
EARLIER: Final = """
    SELECT fingerprint FROM events WHERE project_id = {project:UInt32}
    GROUP BY fingerprint HAVING min(received) <= fromUnixTimestamp64Milli({until:Int64})"""
MERGED: Final = """
    SELECT issue_id, data FROM issue_activity FINAL
    WHERE project_id = {project:UInt32} AND kind = 'merged' AND position(id, {command:String}) > 0 ORDER BY at, id"""


class PresentIssue(Struct, frozen=True):
    """An issue that is merged into no other."""

    issue: int
    fingerprints: list[int]
    error_type: str
    message: str
    events: int


class SentEvent(NamedTuple):
    """A stored event as it was sent: its JSON, its present fingerprint, and `received_ms` in Unix ms."""

    id: bytes
    json: bytes
    fingerprint: int
    sdk: str
    received_ms: int


class MergedIssue(NamedTuple):
    """A merge: `fingerprints` are those of an issue, its own first, that went into `issue`."""

    issue: int
    fingerprints: list[int]


def issues(client: Client, project: int) -> list[PresentIssue]:
    """The project's issues. Raises ClickHouseError."""
    rows = client.query(ISSUES, parameters={"project": project}).result_rows
    return [PresentIssue(*row) for row in rows]


def sent_events(client: Client, project: int, after_ms: int, until_ms: int) -> Iterator[SentEvent]:
    """The events of one server that have a readable payload and were received in this time, in any order. Raises ClickHouseError."""
    last = 0
    while holders := client.query(
        HOLDERS, parameters={"project": project, "after": last}, column_formats={"payload": "bytes"}
    ).result_rows:
        last = int(holders[-1][0])
        content: dict[int, bytes] = {}
        for number, pack, payload in holders:
            if not pack:
                content[int(number)] = payload
                continue
            try:
                events = unpacked(payload)
            except BadPayload:
                continue
            content |= {int.from_bytes(event, "big"): sent for event, sent in events.items()}
        ids = b"".join(number.to_bytes(16, "little") for number in content)
        wanted = ExternalData(file_name="wanted", data=ids, fmt="RowBinary", structure="id UInt128")
        parameters: dict[str, Any] = {"project": project, "after": after_ms, "until": until_ms}
        # An event of which there is no row is erased.
        for number, fingerprint, sdk, received in client.query(
            EVENTS, parameters=parameters, external_data=wanted
        ).result_rows:
            yield SentEvent(int(number).to_bytes(16, "big"), content[int(number)], fingerprint, sdk, received)


def earlier_fingerprints(client: Client, project: int, until_ms: int) -> set[int]:
    """The fingerprints that a stored event of this time or an earlier one has. Raises ClickHouseError."""
    rows = client.query(EARLIER, parameters={"project": project, "until": until_ms}).result_rows
    return {int(row[0]) for row in rows}


def merged_by(client: Client, project: int, command: str) -> list[MergedIssue]:
    """The merges by commands whose id begins like this, in order. Raises ClickHouseError."""
    rows = client.query(MERGED, parameters={"project": project, "command": command}).result_rows
    merges = []
    for issue, data in rows:
        names = json.loads(data).get("fingerprints", [])
        numbers = [number for name in names if (number := parse_hex64(name)) is not None]
        if numbers:
            merges.append(MergedIssue(int(issue), numbers))
    return merges
