"""Stored issues and ids, from which the processors' tables are rebuilt after the topics have expired."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from schemas.issues import FINDINGS
from storage.client import Client
from storage.maintain.reconcile.reconcile import BOUNDED
from storage.tables.erased import ERASED

EVENTS_AT_ONCE: Final = 500_000
"""Approximate events per query, which bounds the users in one result."""
_STATEMENTS: Final = 50
"""Of more projects several are counted by a statement, which opens each part of the table, however few rows it
reads."""
SIZES: Final = "SELECT project_id, count() FROM events GROUP BY project_id ORDER BY project_id"
_COUNTED: Final = """
    SELECT %s, count(), toUnixTimestamp64Milli(min(ts)), toUnixTimestamp64Milli(max(ts)),
        toUnixTimestamp64Milli(max(received)), argMin(release, (ts, release)),
        argMax(tuple(id, release, error_type, message, platform, grouping_version, grouping_rule), (ts, id)),
        sumMap(map(toString(release), toUInt64(1))), sumMap(map(toString(environment), toUInt64(1))),
        sumMap(map(toString(platform), toUInt64(1))),
        sumMap(map(toUInt32(intDiv(toUnixTimestamp(ts), 3600)), toUInt64(1))),
        groupUniqArrayIf(user_hash, user_hash != 0)
    FROM events WHERE %s AND fingerprint %% {parts:UInt32} = {part:UInt32}
    GROUP BY %s"""
COUNTED: Final = _COUNTED % ("fingerprint", "project_id = {project:UInt32}", "fingerprint")
COUNTED_TOGETHER: Final = _COUNTED % (
    "project_id, fingerprint",
    "project_id >= {first:UInt32} AND project_id <= {last:UInt32}",
    "project_id, fingerprint",
)
# Our own text.
ERASED_ISSUES: Final = (
    f"SELECT project_id, fingerprint, sum(n) FROM ({ERASED}) GROUP BY project_id, fingerprint"  # noqa: S608
)
# By its own time: a device's clock was ahead.
_LATER: Final = "bitAnd(bitShiftRight(id, 76), 15) = 7 AND toUInt64(bitShiftRight(id, 80)) >= {since:Int64}"
ERASED_IDS: Final = f"""
    SELECT project_id, id, toInt64(toUnixTimestamp(toDateTime(day, 'UTC'))) * 1000 FROM erased_events FINAL
    WHERE day >= toDate(fromUnixTimestamp64Milli({{since:Int64}}, 'UTC')) OR {_LATER}"""  # noqa: S608 - our own text
SHOWN: Final = """
    SELECT project_id, issue_id, fingerprints, error_type,
        if((project_id, last_event) IN (SELECT project_id, id FROM erased_events) AS is_erased, '', message),
        culprit, status, regressed,
        toUnixTimestamp64Milli(first_seen), toUnixTimestamp64Milli(last_seen), events, users, first_release,
        last_release, environments, releases, assignee, resolved_in, ignore_until,
        if(is_erased, toUInt128(0), last_event), grouping_version,
        grouping_rule, grouping_parts, merged_into, version, toUnixTimestamp64Milli(escalated)
    FROM issues FINAL WHERE deleted = 0 ORDER BY project_id, issue_id"""
"""Without the text of an erased event: it may be that of a part, whose redaction is news under way to its whole."""
CHANGES: Final = f"""
    SELECT issue_id, toUnixTimestamp64Milli(at), id, kind, if(kind = 'commented', '', data), version
    FROM issue_activity FINAL WHERE kind NOT IN {(*sorted(FINDINGS),)} ORDER BY issue_id, version, at, id"""  # noqa: S608 - our own text
"""Of comments only the ids count: an issue that was merged since would forward a known one to the whole."""
SINCE: Final = """
    SELECT count(), groupUniqArrayIf(user_hash, user_hash != 0) FROM events
    WHERE project_id = {project:UInt32} AND fingerprint IN {fingerprints:Array(UInt64)}
        AND received >= fromUnixTimestamp64Milli({at:Int64})"""
RELEASES: Final = """
    SELECT release FROM issue_day_er WHERE project_id = {project:UInt32} GROUP BY release
    HAVING min(first) <= fromUnixTimestamp64Milli({at:Int64}) AND release != '' ORDER BY min(first), release"""
RECEIVED_DAYS: Final = """
    SELECT toInt64(intDiv(toUnixTimestamp64Milli(received), 86400000)) AS day FROM events
    GROUP BY day ORDER BY day DESC LIMIT {limit:UInt32}"""
IDS: Final = f"""
    SELECT project_id, id, toUnixTimestamp64Milli(received) FROM events
    WHERE received >= fromUnixTimestamp64Milli({{since:Int64}}) OR {_LATER}"""  # noqa: S608 - our own text


class StoredCounts(Struct, frozen=True):
    """Counts of the stored events of one fingerprint, in the order of `COUNTED`.

    Times are Unix ms; the seven fields from `last_event` are of the newest event.
    """

    project: int
    fingerprint: int
    events: int
    first_ms: int
    last_ms: int
    received_ms: int
    first_release: str
    last_event: bytes
    last_release: str
    error_type: str
    message: str
    platform: str
    version: str
    rule: str
    releases: dict[str, int]
    environments: dict[str, int]
    platforms: dict[str, int]
    hours: dict[int, int]
    users: list[int]


class StoredIssue(Struct, frozen=True):
    """The last stored record of an issue, from the table `issues`."""

    project: int
    issue: int
    fingerprints: list[int]
    error_type: str
    message: str
    culprit: str
    status: str
    regressed: bool
    first_ms: int
    last_ms: int
    events: int
    users: int
    first_release: str
    last_release: str
    environments: list[str]
    releases: list[str]
    assignee: str
    resolved_in: str
    ignore_until: str
    last_event: bytes
    grouping_version: str
    grouping_rule: str
    grouping_parts: list[str]
    merged_into: int
    version: int
    escalated_ms: int


class StoredChange(Struct, frozen=True):
    """One change of an issue, from the table `issue_activity`."""

    at_ms: int
    id: str
    kind: str
    data: dict[str, Any]
    version: int = 0


def erased(client: Client) -> dict[tuple[int, int], int]:
    """How many events of a project's fingerprint are erased; more while an erasure deletes. Raises ClickHouseError."""
    return {(project, fingerprint): n for project, fingerprint, n in client.query(ERASED_ISSUES).result_rows}


def counted(client: Client) -> Iterator[StoredCounts]:
    """The counts of each fingerprint. Raises ClickHouseError.

    Erased events still count, including those of unfinished erasures.
    """
    deleted = erased(client)
    for projects, events in _together(client.query(SIZES, settings=dict(BOUNDED)).result_rows):
        parts = 1 + events // EVENTS_AT_ONCE
        for part in range(parts):
            for counts in _counted_part(client, projects, {"parts": parts, "part": part}):
                more = deleted.get((counts.project, counts.fingerprint), 0)
                yield replace(counts, events=counts.events + more)


def _together(sizes: Sequence[Sequence[int]]) -> Iterator[tuple[list[int], int]]:
    """Neighbouring projects that one statement counts, and their events."""
    most = 1 + len(sizes) // _STATEMENTS
    projects: list[int] = []
    total = 0
    for project, events in sizes:
        if len(projects) == most or (projects and total + events > EVENTS_AT_ONCE):
            yield projects, total
            projects, total = [], 0
        projects.append(project)
        total += events
    if projects:
        yield projects, total


def _counted_part(client: Client, projects: Sequence[int], part: Mapping[str, int]) -> Iterator[StoredCounts]:
    if len(projects) == 1:
        parameters = {"project": projects[0], **part}
        for row in client.query(COUNTED, parameters=parameters, settings=dict(BOUNDED)).result_rows:
            yield _counted_row(projects[0], *row)
    else:
        parameters = {"first": projects[0], "last": projects[-1], **part}
        for row in client.query(COUNTED_TOGETHER, parameters=parameters, settings=dict(BOUNDED)).result_rows:
            yield _counted_row(*row)


def _counted_row(project: int, fingerprint: int, *row: Any) -> StoredCounts:
    *counts, (last_event, *texts), releases, environments, platforms, hours, users = row
    newest = [last_event.to_bytes(16, "big"), *texts]
    values = [project, fingerprint, *counts, *newest, releases, environments, platforms, hours, users]
    return StoredCounts(*values)


def shown(client: Client) -> Iterator[StoredIssue]:
    """The last stored record of each issue. Raises ClickHouseError."""
    for row in client.query(SHOWN, settings=dict(BOUNDED)).result_rows:
        values = list(row)
        values[7] = bool(values[7])
        values[19] = values[19].to_bytes(16, "big")
        yield StoredIssue(*values)


def changes(client: Client) -> dict[int, list[StoredChange]]:
    """The changes of each issue, in their order; comments without their text. Raises ClickHouseError."""
    by_issue: dict[int, list[StoredChange]] = {}
    for issue, at, identity, kind, data, version in client.query(CHANGES, settings=dict(BOUNDED)).result_rows:
        by_issue.setdefault(issue, []).append(
            StoredChange(at, identity, kind, json.loads(data or "{}"), version)
        )
    return by_issue


def since(client: Client, project: int, fingerprints: list[int], at_ms: int) -> tuple[int, list[int]]:
    """The number of events of fingerprints received since a time, and the hashes of their users.

    Raises ClickHouseError.
    """
    parameters: Mapping[str, Any] = {"project": project, "fingerprints": fingerprints, "at": at_ms}
    [(events, users)] = client.query(SINCE, parameters=dict(parameters), settings=dict(BOUNDED)).result_rows
    return int(events), list(users)


def releases_until(client: Client, project: int, at_ms: int) -> list[str]:
    """The releases of a project first seen up to a time, in that order. Raises ClickHouseError."""
    rows = client.query(RELEASES, parameters={"project": project, "at": at_ms}).result_rows
    return [release for (release,) in rows]


def received_days(client: Client, limit: int) -> list[int]:
    """The newest days (since 1970) on which stored events were received.

    The newest is first. Raises ClickHouseError.
    """
    return [day for (day,) in client.query(RECEIVED_DAYS, parameters={"limit": limit}).result_rows]


def ids(client: Client, since_ms: int) -> Iterator[tuple[int, bytes, int]]:
    """Project, 16-byte id and time of receipt (Unix ms) of the events received since a time.

    Includes erased events, and those that were made later than the time by their ids. Raises ClickHouseError.
    """
    parameters = {"since": since_ms}
    for sql in (IDS, ERASED_IDS):
        with client.query_row_block_stream(sql, parameters=parameters) as blocks:
            for block in blocks:
                for project, identity, received in block:
                    yield project, identity.to_bytes(16, "big"), received
