"""Drops what is past its retention, whole parts at a time: nothing is rewritten, and the disk is free at once.

Tables are partitioned by the days that a row is kept and the week of its time; a partition goes when the last day of its week is
that old, so that a row stays up to six days longer than asked.
"""

import re
from datetime import date, timedelta
from typing import Final

from msgspec import Struct

from storage.client import Client
from storage.repair.rollups import ROLLUPS

TABLES: Final = ("events", "payloads", *(rollup.table for rollup in ROLLUPS))
OUTCOME_DAYS: Final = 400
_WEEK: Final = timedelta(days=7)
_LONGEST_MONTH: Final = timedelta(days=31)
_CLASS: Final = re.compile(r"\((\d+),'(\d{4}-\d\d-\d\d)'\)")
_PARTITIONS: Final = """
    SELECT DISTINCT table, partition_id, partition FROM system.parts
    WHERE active AND database = currentDatabase() AND table IN {tables:Array(String)}"""


class Partition(Struct, frozen=True):
    """A partition of a table, as the server names it."""

    table: str
    id: str
    name: str

    def expired(self, today: date) -> bool:
        """Whether every row of it is past its retention."""
        match = _CLASS.fullmatch(self.name)
        if match is not None:
            return date.fromisoformat(match[2]) + _WEEK + timedelta(days=int(match[1])) <= today
        month = date.fromisoformat(self.name)
        return month + _LONGEST_MONTH + timedelta(days=OUTCOME_DAYS) <= today


def drop_expired(client: Client, today: date) -> list[Partition]:
    """Drop the partitions that are past their retention; returns them. Raises ClickHouseError."""
    rows = client.query(_PARTITIONS, parameters={"tables": [*TABLES, "outcomes"]}).result_rows
    gone = [partition for partition in (Partition(*row) for row in rows) if partition.expired(today)]
    for partition in gone:
        client.command(f"ALTER TABLE {partition.table} DROP PARTITION ID '{partition.id}'")
    return gone
