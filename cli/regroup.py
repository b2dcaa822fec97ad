"""`svc regroup`: groups a project by another version of the fingerprint, shows before what would change, and undoes it."""

import asyncio
import getpass

import click
from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Column, Table

from broker.consumer_lag import readers
from cli.console import console, output, servers_of, settings_of
from cli.failures import fail, reported
from cli.projects import find_project
from cli.workspace import Workspace
from control.operator_tools import OperatorTools
from control.project_store import ProjectStore
from grouping.fingerprint import CURRENT_VERSION, VERSIONS
from rebuild.regrouping import IssueChange, RegroupReport, preview, regroup, undo
from schemas.errors import RegroupRefused
from schemas.projects import Project
from schemas.settings import MigrateSettings, ProcessorsSettings, WriterSettings
from storage.shards import open_servers

_ANSWER_SECONDS = 3600
_SHOWN = 20


@click.command(name="regroup")
@click.argument("project")
@click.option("--version", type=click.Choice(list(VERSIONS)), default=CURRENT_VERSION, show_default=True)
@click.option("--undo", "is_undo", is_flag=True, help="Return to the version before the last change.")
@click.option("--dry-run", is_flag=True, help="Print what would change; change nothing.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--by", default=getpass.getuser, help="Who changes it, for the record; by default the current user."
)
@click.option(
    "--wait",
    default=60.0,
    show_default=True,
    help="Seconds to wait until the pipeline has stored earlier events.",
)
@click.pass_obj
def command(
    workspace: Workspace,
    /,
    project: str,
    version: str,
    is_undo: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    by: str,
    wait: float,
) -> None:
    """Group a project's events by another version of the fingerprint.

    Issues that the version puts together are merged. Of an issue that it takes apart, the larger part goes on, and new events of the rest
    open issues of their own. Run it again after an interruption: it finishes. PROJECT is an id or a name.
    """
    if is_undo and dry_run:
        raise click.UsageError("--undo and --dry-run exclude each other")
    settings = servers_of(workspace, MigrateSettings, clickhouse=True)
    groups = readers(
        settings_of(workspace, ProcessorsSettings).processors_app,
        settings_of(workspace, WriterSettings).writer_group,
        len(settings.shard_urls),
    )

    def say(what: str) -> None:
        if not as_json:
            click.echo(f"{what} ...", err=True)

    try:
        with reported(settings, "run it again to finish"):
            record = asyncio.run(_find(settings, project))
            with open_servers(settings, send_receive_timeout=_ANSWER_SECONDS) as servers:
                tools = OperatorTools(settings, groups, servers, wait, by, say)
                if is_undo:
                    if not yes:
                        click.confirm(
                            f"Undo the last change of {record.name}'s grouping?", abort=True, err=True
                        )
                    report = undo(tools, record)
                else:
                    report = _regroup(tools, record, version, dry_run=dry_run, asks=not yes, as_json=as_json)
    except RegroupRefused as refusal:
        fail(str(refusal))
    output(as_json, report, lambda: show(report))


async def _find(settings: MigrateSettings, wanted: str) -> Project:
    async with ProjectStore(settings) as store:
        return find_project(store, wanted)


def _regroup(
    tools: OperatorTools, project: Project, version: str, *, dry_run: bool, asks: bool, as_json: bool
) -> RegroupReport:
    run = project.regrouping
    is_begun = run is not None and not run.done
    if project.grouping_version == version and not is_begun:
        raise RegroupRefused(f"{project.name} is grouped by {version} already")
    if dry_run or (asks and not is_begun):
        report = preview(tools, project, version)
        if dry_run:
            return report
        if not as_json:
            show(report)
        click.confirm(f"Group {project.name} by {version} from now on?", abort=True, err=True)
    return regroup(tools, project, version)


def show(report: RegroupReport) -> None:
    """Print a report for people."""
    out = console()
    ignored = [
        f"{number:,} {what}"
        for number, what in (
            (report.unreadable, "without a readable payload"),
            (report.dropped, "that rules drop"),
        )
        if number
    ]
    out.print(
        f"{report.events:,} stored events in {report.issues:,} issues, {report.before} → {report.after}"
        + (f" ({' and '.join(ignored)} left out)" if ignored else "")
    )
    verbs = ("would join", "would split off") if report.is_dry else ("joined", "split off")
    split = len({change.issue for change in report.splits})
    stay = (
        report.issues
        - len(report.joins)
        - len({change.issue for change in report.splits} - {change.issue for change in report.joins})
    )
    out.print(
        f"{stay:,} issues stay as they are, {len(report.joins):,} {verbs[0]} others, of {split:,} a part {verbs[1]}"
    )
    _show(report.joins, "joins", "all events")
    _show(report.splits, "part of", "stored events like it")


def _show(changes: list[IssueChange], head: str, events: str) -> None:
    if not changes:
        return
    out = console()
    table = Table(
        Column(head, no_wrap=True),
        Column("", ratio=1, no_wrap=True, overflow="ellipsis"),
        Column(events, justify="right"),
        Column("into", no_wrap=True),
        box=SIMPLE,
        pad_edge=False,
    )
    for change in changes[:_SHOWN]:
        into = f"{change.into} (new)" if change.is_new else change.into
        table.add_row(change.issue, escape(change.title), f"{change.events:,}", into)
    out.print(table)
    if len(changes) > _SHOWN:
        out.print(f"and {len(changes) - _SHOWN:,} more; --json prints all")
