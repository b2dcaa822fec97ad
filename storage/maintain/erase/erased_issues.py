"""Issues described by an erased event: an issue's message and newest event come from one event.

The lifetime counts of an issue stay, since numbers identify no user.
"""

import uuid
from typing import Final

from clickhouse_connect.driver.external import ExternalData
from msgspec import Struct

from schemas.ids import hex64, issue_id
from storage.client import Client
from storage.maintain.erase.erase_scope import Scope
from storage.maintain.erase.purge import purge
from storage.shards import OpenServer

MAX_TEXT: Final = 1000
_EVENTS_AT_ONCE: Final = 5_000
_ROUNDS: Final = 20
_DESCRIBED: Final = "project_id = {project} AND last_event GLOBAL IN (SELECT id FROM {events})"
ISSUES: Final = "SELECT {columns} FROM issues FINAL WHERE deleted = 0 AND {described}"
DESCRIBING: Final = "SELECT DISTINCT last_event FROM issues WHERE {described} ORDER BY last_event"
REDESCRIBE: Final = """
    INSERT INTO {own}issues
    SELECT * EXCEPT (described, text, newest) REPLACE (substringUTF8(text, 1, {size}) AS message, newest AS last_event)
    FROM ({issues}) AS issues
    LEFT JOIN
    (
        SELECT issue_id AS described, argMax(message, (ts, id)) AS text, argMax(id, (ts, id)) AS newest
        FROM (SELECT fingerprint, ts, id, message FROM events
              WHERE project_id = {project}
                  AND fingerprint GLOBAL IN (SELECT arrayJoin(fingerprints) FROM ({issues}))) AS events
        INNER JOIN (SELECT issue_id, arrayJoin(fingerprints) AS fingerprint FROM ({issues})) AS of USING (fingerprint)
        GROUP BY issue_id
    ) AS left ON issues.issue_id = left.described"""

NEWEST: Final = """
    SELECT erased.fingerprint, erased.newest, left.newest, substringUTF8(left.text, 1, {size}),
        toUnixTimestamp64Milli(left.at.1)
    FROM
    (
        SELECT fingerprint, argMax(id, (ts, id)) AS newest, max((ts, id)) AS at FROM {events} GROUP BY fingerprint
    ) AS erased
    LEFT JOIN
    (
        SELECT fingerprint, argMax(id, (ts, id)) AS newest, argMax(message, (ts, id)) AS text, max((ts, id)) AS at
        FROM events
        WHERE project_id = {project} AND fingerprint GLOBAL IN (SELECT fingerprint FROM {events}) GROUP BY fingerprint
    ) AS left ON erased.fingerprint = left.fingerprint
    WHERE erased.at > left.at"""


class IssueDescription(Struct, frozen=True):
    """An issue whose newest event is `erased`. Ids are texts.

    `newest`, its message and its time in Unix ms replace it; they are empty and 0 if there is none.
    """

    issue: str
    erased: str
    newest: str
    message: str
    newest_ms: int


def descriptions(client: Client, scope: Scope) -> list[IssueDescription]:
    """The new descriptions of the issues of a listed scope's events. Raises ClickHouseError."""
    sql = NEWEST.format(project=scope.project, size=MAX_TEXT, events=scope.events)
    return [
        IssueDescription(
            hex64(issue_id(scope.project, int(fingerprint))), _text(erased), _text(newest), message, ms
        )
        for fingerprint, erased, newest, message, ms in client.query(sql).result_rows
    ]


def described(client: Client, scope: Scope, external: ExternalData | None = None) -> list[int]:
    """The issues whose newest event is one of these. Raises ClickHouseError."""
    rows = client.query(_issues(scope, "issue_id"), external_data=external).result_rows
    return sorted(int(row[0]) for row in rows)


def redescribe(server: OpenServer, scope: Scope, erasure: str) -> list[int]:
    """Describe the issues by their newest remaining event, or by none; returns them.

    The list and the events may be on other servers. The row keeps its version; of two rows with one version,
    FINAL returns the later. Raises ClickHouseError and MutationFails.
    """
    issues = described(server.whole, scope)
    if issues:
        own = f"{server.own.database}." if server.shard.count > 1 else ""
        sql = REDESCRIBE.format(own=own, project=scope.project, size=MAX_TEXT, issues=_issues(scope, "*"))
        server.whole.command(sql)
    # Superseded rows have the description too. A mutation has no user, so it can't read other servers.
    for _ in range(_ROUNDS):
        events = server.whole.query(DESCRIBING.format(described=_described(scope))).result_rows
        if not events:
            break
        for first in range(0, len(events), _EVENTS_AT_ONCE):
            ids = ", ".join(f"'{event}'" for (event,) in events[first : first + _EVENTS_AT_ONCE])
            purge(server.own, {"issues": f"project_id = {scope.project} AND last_event IN ({ids})"}, erasure)
    return issues


def _described(scope: Scope) -> str:
    return _DESCRIBED.format(project=scope.project, events=scope.events)


def _issues(scope: Scope, columns: str) -> str:
    return ISSUES.format(columns=columns, described=_described(scope))


def _text(event: int) -> str:
    return str(uuid.UUID(int=int(event))) if event else ""
