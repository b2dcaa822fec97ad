"""What a full or failing disk leaves in ClickHouse: parts that were set aside as broken, and events whose issue is gone."""

from datetime import datetime
from typing import Final

from clickhouse_connect.driver.exceptions import Error
from msgspec import Struct

from storage.client import Client, scalar

_BROKEN: Final = """
    SELECT database, table, name, modification_time FROM system.detached_parts
    WHERE database = currentDatabase() AND startsWith(reason, 'broken') ORDER BY table, name"""
# From a rollup: events themselves are too many to look through each time. What is young may wait for its issue.
_WITHOUT_ISSUE: Final = """
    SELECT count() FROM
    (
        SELECT project_id, fingerprint FROM issue_day GROUP BY project_id, fingerprint
        HAVING toInt64(sum(n)) > 0 AND max(last) < now64(3, 'UTC') - toIntervalSecond({seconds:UInt32})
    )
    WHERE (project_id, fingerprint) NOT IN (SELECT project_id, arrayJoin(fingerprints) FROM issues FINAL WHERE deleted = 0)"""
_YOUNG_SECONDS: Final = 600
_DENIED: Final = 497


class BrokenPart(Struct, frozen=True):
    """A part that ClickHouse found damaged when it started, and set aside: its rows are in no answer."""

    database: str
    table: str
    name: str
    at: datetime

    @property
    def removal(self) -> str:
        """The statement that removes it, once its rows are back."""
        return f"ALTER TABLE {self.database}.{self.table} DROP DETACHED PART '{self.name}' SETTINGS allow_drop_detached = 1"


def broken_parts(client: Client) -> list[BrokenPart]:
    """The parts of our tables that were set aside as broken; none for a user who may not ask, which `svc doctor` tells. Raises ClickHouseError."""
    try:
        return [BrokenPart(*row) for row in client.query(_BROKEN).result_rows]
    except Error as error:
        if error.code != _DENIED:
            raise
        return []


def without_issue(client: Client, young_seconds: int = _YOUNG_SECONDS) -> int:
    """How many fingerprints have events, none of them as young as that, and no issue. Raises ClickHouseError."""
    return int(scalar(client, _WITHOUT_ISSUE, {"seconds": young_seconds}))
