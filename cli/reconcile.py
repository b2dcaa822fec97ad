"""`svc reconcile`: compares accepted, stored and counted events per project, and repairs differences."""

import asyncio
import sys
import time
from collections.abc import Mapping

import click
import msgspec
from rich.box import SIMPLE
from rich.table import Table

from broker.consumer_lag import ConsumerLag, lags, readers_of
from cli.console import console, json_option, output, servers_of
from cli.failures import reported
from cli.workspace import Workspace
from schemas.settings import MigrateSettings
from schemas.topics import Topic
from storage.maintain.audit.damage import broken_parts
from storage.maintain.reconcile.reconcile import TWICE, Reconciliation, compare, worst
from storage.maintain.reconcile.repair_differences import repair_differences, today
from storage.shards import open_servers

_DIFFERENT = 1
_UNSETTLED = 3
_LATE = (
    "{0.group} has not stored the resent records within {1:g} s ({0.records:,} left): "
    "is `svc writer` running?"
)
_NO_RECORD = (
    "the topic `issues` has no record for some events: stop the processors, run `svc rebuild issues`, "
    "start them, and repair once more"
)
_MAX_DIFFERENCES = 40
_PROJECT_WIDTH = 12  # an id in parentheses; on a narrow terminal the name is folded


@click.command()
@json_option
@click.option("--repair", is_flag=True, help="Repair differences, while everything runs.")
@click.option(
    "--wait",
    default=15.0,
    show_default=True,
    help="Seconds to wait for the pipeline to read its topics to the end.",
)
@click.pass_obj
def reconcile(workspace: Workspace, as_json: bool, repair: bool, wait: float) -> None:
    """Compare accepted, stored and counted events per project.

    Exit status 1: they differ. 3: they differ, but the pipeline is behind, which may explain the difference.
    """
    settings = servers_of(workspace, MigrateSettings, clickhouse=True)
    groups = readers_of(settings)
    with reported(settings), open_servers(settings) as servers:
        behind = asyncio.run(_drain(settings, groups, wait))
        result = compare(servers, today())
        broken = {part.table for server in servers if repair for part in broken_parts(server.own)}
        repaired, late = (
            repair_differences(settings, servers, result, broken, wait)
            if broken or (repair and result.differences)
            else ({}, None)
        )
        if repaired:
            result = compare(servers, today())
        if result.differences and not behind:
            # Under load, events arrived during the comparison.
            behind = asyncio.run(lags(settings, groups))
    if late:
        click.echo(_LATE.format(late, wait), err=True)
    state = {
        "equal": not result.differences,
        "settled": not behind,
        "behind": behind,
        "repaired": repaired,
    }
    output(
        as_json, msgspec.to_builtins(result) | state, lambda: print_reconciliation(result, behind, repaired)
    )
    sys.exit(status(result, behind))


def status(result: Reconciliation, behind: list[ConsumerLag]) -> int:
    """The command's exit status: duplicates in a table are an error even while the pipeline is behind."""
    if not result.differences:
        return 0
    return _UNSETTLED if behind and not result.differs(*TWICE.values()) else _DIFFERENT


async def _drain(
    settings: MigrateSettings, groups: Mapping[str, list[Topic]], wait: float
) -> list[ConsumerLag]:
    until = time.monotonic() + wait
    while True:
        behind = await lags(settings, groups)
        if not behind or time.monotonic() > until:
            return behind
        await asyncio.sleep(0.5)


def print_reconciliation(result: Reconciliation, behind: list[ConsumerLag], repaired: dict[str, int]) -> None:
    """Print the differences, the lag and the repairs."""
    out = console()
    table = Table(box=SIMPLE, pad_edge=False, collapse_padding=True)
    table.add_column("project", overflow="fold", min_width=_PROJECT_WIDTH)
    for name in ("accepted", "repeats", "dead", "stored", "payloads", "rollups", "in\nissues", "issues"):
        table.add_column(name, justify="right", no_wrap=True)
    wrong = {difference.project_id for difference in result.differences}
    for p in result.projects:
        sums = {count for name, count in p.rollups.items() if name != "tag_day"}
        table.add_row(
            f"{p.name or '?'} ({p.project_id})",
            *(f"{n:,}" for n in (p.accepted, p.duplicates, p.dead_lettered, p.stored, p.payloads)),
            " ".join(f"{count:,}" for count in sorted(sums)),
            *(f"{n:,}" for n in (p.counted_in_issues, p.issues)),
            style="red" if p.project_id in wrong else None,
        )
    out.print(table)
    for p in result.projects:
        if p.erased:
            out.print(f"{p.name or '?'} ({p.project_id}): {p.erased:,} of these are erased")
    for lag in behind:
        out.print(
            f"{lag.group} is {lag.records:,} records behind on {lag.topic}: differences may be temporary"
        )
    if not result.quiet:
        out.print("blocks were inserted during the comparison: differences may be temporary")
    for name, rows in repaired.items():
        out.print(f"repaired {name}: {rows:,}", style="yellow")
    for d in worst(result.differences, _MAX_DIFFERENCES):
        where = f" on {d.day}" if d.day else ""
        keys = f" ({d.keys:,} keys)" if d.keys else ""
        out.print(
            f"project {d.project_id}{where}: {d.what}: expected {d.expected:,}, found {d.found:,}{keys}",
            style="red",
        )
    if len(result.differences) > _MAX_DIFFERENCES:
        out.print(f"... and {len(result.differences) - _MAX_DIFFERENCES:,} more")
    if "issues" in repaired and result.differs("events without issue"):
        out.print(_NO_RECORD, style="red")
    if not result.differences:
        out.print("accepted = stored + duplicate + dead letters + erased, and every rollup and issue agrees")
