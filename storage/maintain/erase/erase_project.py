"""Erases a whole project from all tables. Tokens and topics are up to the caller."""

import time
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from schemas.ids import hex64
from storage.client import Client
from storage.maintain.erase import ledger
from storage.maintain.erase.purge import purge
from storage.maintain.erase.sizes import Sizes, TableReport, added, compared, measure
from storage.shards import Servers

Say = Callable[[str], None]
# Tables of later migrations are included by their column. The ledger stays, as the record of the erasure,
# and so do the changes, without what they say.
_TABLES: Final = """
    SELECT table FROM system.columns
    WHERE database = currentDatabase() AND name = 'project_id' AND table != 'erasures'
        AND table IN (SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree')
    ORDER BY table"""
_ISSUES: Final = "SELECT DISTINCT issue_id FROM issues WHERE project_id = {project:UInt32} ORDER BY issue_id"
_FORGET_TEXTS: Final = """
    INSERT INTO changes SELECT * REPLACE ('' AS before, '' AS after, 1 AS erased)
    FROM (SELECT * FROM changes FINAL WHERE project_id = {project:UInt32} AND erased = 0)"""
_AHEAD_MS: Final = 60_000


class ProjectReport(Struct, frozen=True, rename="camel", kw_only=True):
    """The erased data, or with `dry_run` the data that would be erased.

    `before` is the time of an earlier erasure that left nothing. `erasure` is one id for each server,
    separated by spaces.
    """

    project_id: str
    tables: list[TableReport]
    erasure: str = ""
    dry_run: bool = False
    before: str | None = None

    @property
    def rows(self) -> int:
        return sum(table.rows_before for table in self.tables)


def begun(servers: Servers, project: int) -> bool:
    """Whether an erasure of the project has begun. Raises ClickHouseError."""
    return any(_erasures(server.own, project) for server in servers)


def preview(servers: Servers, project: int) -> ProjectReport:
    """Count the rows of a project; changes nothing. Raises ClickHouseError."""
    sizes = [measure(server.own, _conditions(server.own, project)) for server in servers]
    tables = added([compared(size.rows, size, size) for size in sizes])
    report = ProjectReport(project_id=str(project), tables=tables, dry_run=True)
    last = [erasures[-1] for server in servers if (erasures := _erasures(server.own, project))]
    if len(last) == len(servers) and all(one.stage == "done" for one in last) and not report.rows:
        ended = max(one.ended for one in last).isoformat()
        return replace(report, erasure=" ".join(one.id for one in last), before=ended)
    return report


def issues(servers: Servers, project: int) -> list[str]:
    """The ids of a project's issues, including merged ones. Raises ClickHouseError."""
    found = {
        hex64(int(issue))
        for server in servers
        for (issue,) in server.own.query(_ISSUES, parameters={"project": project}).result_rows
    }
    return sorted(found)


def erase_project(
    servers: Servers, project: int, by: str, finish: Callable[[], None], say: Say
) -> ProjectReport:
    """Delete every row of a project.

    `finish` is called after the deletion, before its end is recorded, and may raise. Idempotent and
    resumable. Ingestion for the project must have stopped. Raises ClickHouseError and MutationFails.
    """
    existing = preview(servers, project)
    if existing.before is not None:
        finish()
        return replace(existing, dry_run=False)
    erasures = [_begin(server.own, project, by) for server in servers]
    say("deleting from the tables")
    before = []
    for server, erasure in zip(servers, erasures, strict=True):
        wheres = _conditions(server.own, project)
        before.append(measure(server.own, wheres))
        server.own.command(_FORGET_TEXTS, parameters={"project": project})
        purge(server.own, wheres, erasure.id)
    finish()
    reports = [
        _end(server.own, erasure, sizes)
        for server, erasure, sizes in zip(servers, erasures, before, strict=True)
    ]
    return ProjectReport(
        project_id=str(project),
        tables=added([report.tables for report in reports]),
        erasure=" ".join(report.erasure for report in reports),
    )


def _begin(client: Client, project: int, by: str) -> ledger.Erasure:
    unfinished = [erasure for erasure in _erasures(client, project) if erasure.stage != "done"]
    return unfinished[0] if unfinished else ledger.begin(client, project, "project", by)


def _end(client: Client, erasure: ledger.Erasure, before: Sizes) -> ProjectReport:
    """Record the end of a server's erasure."""
    _mark_deleted(client, erasure.project, erasure.id)
    after = measure(client, _conditions(client, erasure.project))
    report = ProjectReport(
        project_id=str(erasure.project), tables=compared(after.rows, before, after), erasure=erasure.id
    )
    ledger.advance(client, erasure, "done", msgspec.json.encode(report).decode())
    return report


def _erasures(client: Client, project: int) -> list[ledger.Erasure]:
    return [erasure for erasure in ledger.read(client, project) if erasure.kind == "project"]


def _conditions(client: Client, project: int) -> dict[str, str]:
    wheres = {str(row[0]): f"project_id = {project}" for row in client.query(_TABLES).result_rows}
    return wheres | {
        "projects": f"project_id = {project} AND deleted = 0",
        "changes": f"project_id = {project} AND (before != '' OR after != '')",
    }


def _mark_deleted(client: Client, project: int, erasure: str) -> None:
    """Insert a tombstone whose version exceeds that of a row that a writer may be about to insert."""
    row = [project, 1, time.time_ns() // 1_000_000 + _AHEAD_MS]
    client.insert("projects", [row], column_names=["project_id", "deleted", "version"])
    purge(client, {"projects": f"project_id = {project} AND deleted = 0"}, erasure)
