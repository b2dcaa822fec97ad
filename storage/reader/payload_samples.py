"""Recent events of many issues and projects, to train a payload dictionary."""

from typing import Any, Final

import numpy as np
from clickhouse_connect.driver.external import ExternalData
from msgspec import Struct

from schemas.errors import BadPayload
from schemas.payload import decompress, number_of
from storage.client import Client

_ISSUES: Final = """
    SELECT project_id, fingerprint FROM issue_day WHERE day >= today() - {days:UInt16}
    GROUP BY project_id, fingerprint ORDER BY sum(n) DESC LIMIT {each:UInt32} BY project_id LIMIT {most:UInt32}"""
_EVENTS: Final = """
    SELECT project_id, fingerprint, id FROM events
    WHERE (project_id, fingerprint) IN (SELECT project_id, fingerprint FROM wanted)
        AND ts >= now() - toIntervalDay({days:UInt16})
    LIMIT {each:UInt32} BY project_id, fingerprint LIMIT {most:UInt32}"""
_PAYLOADS: Final = """
    SELECT fingerprint, payload FROM payloads INNER JOIN wanted USING (project_id, id)
    WHERE project_id IN (SELECT project_id FROM wanted) AND id IN (SELECT id FROM wanted)"""
_ISSUE: Final = np.dtype([("project_id", "<u4"), ("fingerprint", "<u8")])
_EVENT: Final = np.dtype([("project_id", "<u4"), ("fingerprint", "<u8"), ("id", "V16")])
_ISSUES_OF_A_PROJECT: Final = 500
_EVENTS_OF_AN_ISSUE: Final = 8
# A partial result is a sample too.
_BOUNDS: Final = {
    "max_rows_to_read": 50_000_000,
    "read_overflow_mode": "break",
    "max_execution_time": 30,
    "timeout_overflow_mode": "break",
}


class PayloadSample(Struct, frozen=True):
    """The JSON of an event, its fingerprint, and the number of its payload's dictionary."""

    fingerprint: int
    event: bytes
    dictionary: int


def samples(client: Client, *, days: int, most: int) -> list[PayloadSample]:
    """At most `most` events of the last `days`: a few of each issue, many issues of each project. Raises ClickHouseError."""
    issues = client.query(
        _ISSUES,
        parameters={"days": days, "each": _ISSUES_OF_A_PROJECT, "most": most},
        settings=_BOUNDS,
    ).result_rows
    if not issues:
        return []
    events = client.query(
        _EVENTS,
        parameters={"days": days, "each": _EVENTS_OF_AN_ISSUE, "most": most},
        settings=_BOUNDS,
        external_data=_wanted(np.array(issues, _ISSUE), "project_id UInt32, fingerprint UInt64"),
    ).result_rows
    if not events:
        return []
    rows = [
        (project, fingerprint, int(number).to_bytes(16, "little")) for project, fingerprint, number in events
    ]
    wanted = _wanted(np.array(rows, _EVENT), "project_id UInt32, fingerprint UInt64, id UInt128")
    payloads = client.query(
        _PAYLOADS, settings=_BOUNDS, external_data=wanted, column_formats={"payload": "bytes"}
    ).result_rows
    return [sample for fingerprint, frame in payloads if (sample := _sample(int(fingerprint), frame))]


def _sample(fingerprint: int, frame: bytes) -> PayloadSample | None:
    try:
        return PayloadSample(fingerprint, decompress(frame), number_of(frame))
    except BadPayload:
        return None


def _wanted(rows: "np.ndarray[Any, Any]", structure: str) -> ExternalData:
    return ExternalData(file_name="wanted", data=rows.tobytes(), fmt="RowBinary", structure=structure)
