"""Finds damage by a full or failing disk: parts detached as broken, and events whose issue is missing."""

from datetime import date, datetime
from typing import Final

from clickhouse_connect.driver.exceptions import Error
from msgspec import Struct

from storage.client import Client

_BROKEN: Final = """
    SELECT database, table, name, modification_time FROM system.detached_parts
    WHERE database = currentDatabase() AND startsWith(reason, 'broken') ORDER BY table, name"""
# From a rollup, since `events` is too large to scan.
_WITHOUT_ISSUE: Final = """
    SELECT project_id, fingerprint FROM
    (SELECT project_id, fingerprint FROM issue_day WHERE day >= {since:Date}
     GROUP BY project_id, fingerprint HAVING toInt64(sum(n)) > 0)
    WHERE (project_id, fingerprint) NOT IN
        (SELECT project_id, arrayJoin(fingerprints) FROM issues FINAL WHERE deleted = 0)"""
_EPOCH: Final = date(1970, 1, 1)
_DENIED: Final = 497


class BrokenPart(Struct, frozen=True):
    """A part that ClickHouse detached as broken at its start; no query returns its rows."""

    database: str
    table: str
    name: str
    at: datetime

    @property
    def removal(self) -> str:
        """The statement that removes the part, after its rows have been restored."""
        return (
            f"ALTER TABLE {self.database}.{self.table} DROP DETACHED PART '{self.name}'"
            " SETTINGS allow_drop_detached = 1"
        )


def broken_parts(client: Client) -> list[BrokenPart]:
    """The detached broken parts of the service's tables. Raises ClickHouseError.

    The list is empty without the grant, which `svc doctor` names.
    """
    try:
        return [BrokenPart(*row) for row in client.query(_BROKEN).result_rows]
    except Error as error:
        if error.code != _DENIED:
            raise
        return []


def without_issue(client: Client, since: date = _EPOCH) -> set[tuple[int, int]]:
    """The projects and fingerprints of events, stored since a day, that have no issue.

    The issue may still be on its way. A few days are cheap, because the rollup is partitioned by weeks.
    Raises ClickHouseError.
    """
    rows = client.query(_WITHOUT_ISSUE, parameters={"since": since}).result_rows
    return {(project, fingerprint) for project, fingerprint in rows}
