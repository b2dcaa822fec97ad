"""Erases a whole project from all tables. Tokens and topics are up to the caller."""

import time
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from schemas.ids import hex64
from storage.client import Client
from storage.erase import ledger
from storage.erase.purge import purge
from storage.erase.sizes import TableReport, compared, measure

Say = Callable[[str], None]
# Tables of later migrations are included by their column. The ledger stays, as the record of the erasure.
_TABLES: Final = """
    SELECT table FROM system.columns
    WHERE database = currentDatabase() AND name = 'project_id' AND table != 'erasures'
        AND table IN (SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree')
    ORDER BY table"""
_ISSUES: Final = "SELECT DISTINCT issue_id FROM issues WHERE project_id = {project:UInt32} ORDER BY issue_id"
_AHEAD_MS: Final = 60_000


class ProjectReport(Struct, frozen=True, rename="camel", kw_only=True):
    """What was erased, or would be with `dry_run`; `before` is the time of an earlier erasure that left nothing."""

    project_id: str
    tables: list[TableReport]
    erasure: str = ""
    dry_run: bool = False
    before: str | None = None

    @property
    def rows(self) -> int:
        return sum(table.rows_before for table in self.tables)


def begun(client: Client, project: int) -> bool:
    """Whether an erasure of the project has begun. Raises ClickHouseError."""
    return bool(_erasures(client, project))


def preview(client: Client, project: int) -> ProjectReport:
    """Count the rows of a project; changes nothing. Raises ClickHouseError."""
    sizes = measure(client, _conditions(client, project))
    known = _erasures(client, project)
    report = ProjectReport(project_id=str(project), tables=compared(sizes.rows, sizes, sizes), dry_run=True)
    if known and known[-1].stage == "done" and not report.rows:
        return replace(report, erasure=known[-1].id, before=known[-1].ended.isoformat())
    return report


def issues(client: Client, project: int) -> list[str]:
    """The ids of a project's issues, including merged ones. Raises ClickHouseError."""
    rows = client.query(_ISSUES, parameters={"project": project}).result_rows
    return [hex64(int(row[0])) for row in rows]


def erase_project(
    client: Client, project: int, by: str, finish: Callable[[], None], say: Say
) -> ProjectReport:
    """Delete every row of a project; `finish` is called after the deletion, before its end is recorded, and may raise.

    Idempotent and resumable. Ingestion for the project must have stopped. Raises ClickHouseError and MutationFails.
    """
    known = _erasures(client, project)
    existing = preview(client, project)
    if existing.before is not None:
        finish()
        return replace(existing, dry_run=False)
    erasure = next((erasure for erasure in known if erasure.stage != "done"), None)
    if erasure is None:
        erasure = ledger.begin(client, project, "project", by)
    wheres = _conditions(client, project)
    before = measure(client, wheres)
    say("deleting from the tables")
    purge(client, wheres, erasure.id)
    finish()
    _mark_deleted(client, project, erasure.id)
    after = measure(client, wheres)
    report = ProjectReport(
        project_id=str(project), tables=compared(wheres, before, after), erasure=erasure.id
    )
    ledger.advance(client, erasure, "done", msgspec.json.encode(report).decode())
    return report


def _erasures(client: Client, project: int) -> list[ledger.Erasure]:
    return [erasure for erasure in ledger.read(client, project) if erasure.kind == "project"]


def _conditions(client: Client, project: int) -> dict[str, str]:
    wheres = {str(row[0]): f"project_id = {project}" for row in client.query(_TABLES).result_rows}
    return wheres | {"projects": f"project_id = {project} AND deleted = 0"}


def _mark_deleted(client: Client, project: int, erasure: str) -> None:
    """Insert a tombstone whose version exceeds that of a row that a writer may be about to insert."""
    row = [project, 1, time.time_ns() // 1_000_000 + _AHEAD_MS]
    client.insert("projects", [row], column_names=["project_id", "deleted", "version"])
    purge(client, {"projects": f"project_id = {project} AND deleted = 0"}, erasure)
