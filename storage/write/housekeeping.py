"""The writer's work apart from its stages: the table `projects`, expired partitions, broken parts.

Tables are partitioned by the days that a row is stored and the week of its time. A partition is dropped as a
whole once the last day of its week is past the retention. So a row is stored up to six days longer, nothing
is rewritten, and the disk space is free immediately.
"""

import asyncio
import logging
import re
import time
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Final

from msgspec import Struct

from schemas.projects import ProjectRegistry
from storage.client import Client
from storage.exactly_once.server_state import TABLES
from storage.maintain.audit.damage import broken_parts
from storage.tables.record_rows import PROJECTS, project_row, table
from storage.write.inserter import Inserter
from storage.write.writer_metrics import WriterMetrics

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
        """Whether each row of it is past its retention."""
        match = _CLASS.fullmatch(self.name)
        if match is not None:
            return date.fromisoformat(match[2]) + _WEEK + timedelta(days=int(match[1])) <= today
        month = date.fromisoformat(self.name)
        return month + _LONGEST_MONTH + timedelta(days=OUTCOME_DAYS) <= today


def drop_expired(client: Client, today: date) -> list[Partition]:
    """Drop the partitions that are past their retention; returns them. Raises ClickHouseError."""
    rows = client.query(_PARTITIONS, parameters={"tables": [*TABLES, "outcomes"]}).result_rows
    expired = [partition for partition in (Partition(*row) for row in rows) if partition.expired(today)]
    for partition in expired:
        client.command(f"ALTER TABLE {partition.table} DROP PARTITION ID '{partition.id}'")
    return expired


log = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 3600.0


async def run_housekeeping(inserter: Inserter, metrics: WriterMetrics) -> None:
    """Drop expired partitions and report broken parts, now and every hour, until cancelled."""
    while True:
        broken = await inserter.run(broken_parts)
        metrics.broken_parts.set(len(broken))
        for part in broken:
            log.error(
                "ClickHouse has detached %s of %s as broken: run `svc reconcile --repair`",
                part.name,
                part.table,
                extra={"event": "part_detached"},
            )
        today = datetime.now(UTC).date()
        for partition in await inserter.run(partial(drop_expired, today=today)):
            log.info(
                "dropped %s of %s: past its retention",
                partition.name,
                partition.table,
                extra={"event": "partition_dropped"},
            )
        await asyncio.sleep(_EVERY_SECONDS)


_LOOK_SECONDS: Final = 2.0


async def write_projects(registry: ProjectRegistry, inserter: Inserter) -> None:
    """Write the registry to the table `projects` at each change, until cancelled."""
    written = 0
    while True:
        if registry.version != written:
            written = registry.version
            now = time.time_ns() // 1_000_000
            rows = table(PROJECTS, [project_row(project, now) for project in registry])
            if rows.num_rows:
                await inserter.insert("projects", rows)
        await asyncio.sleep(_LOOK_SECONDS)
