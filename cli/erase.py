"""`svc erase`: removes one user's events, or a whole project, from every table, and prints a report."""

from typing import Final

import click
import msgspec
from rich.box import SIMPLE
from rich.table import Column, Table

from broker.consumer_lag import readers_of
from cli.console import console, current_user, json_option, output, servers_of
from cli.failures import REFUSED_STATUS, fail, reported
from cli.workspace import Workspace
from control.erasure import (
    Left,
    Report,
    erase_project,
    erase_user,
    find,
    left,
)
from control.operator_tools import OperatorTools
from schemas.settings import MigrateSettings
from storage.maintain.erase.erase_user import UserReport
from storage.shards import open_servers

_ANSWER_SECONDS: Final = 3600
"""Finding a user may scan whole tables."""


@click.command()
@click.option("--project", required=True, help="The project's id or name.")
@click.option(
    "--user", help="A user's id as in user.id; `-` reads it from the input. Unset: the whole project."
)
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--dry-run", is_flag=True, help="Count the events to erase; change nothing.")
@json_option
@click.option("--by", default=current_user, help="Who erases, for the record; by default the current user.")
@click.option(
    "--wait",
    default=60.0,
    show_default=True,
    help="Seconds to wait until the pipeline has stored earlier events.",
)
@click.pass_obj
def erase(
    workspace: Workspace,
    /,
    project: str,
    user: str | None,
    yes: bool,
    dry_run: bool,
    as_json: bool,
    by: str,
    wait: float,
) -> None:
    """Erase a user's events, or a whole project, from all tables and rollups.

    Run it again after an interruption: it resumes. Exit status 1: not or partly done; 2: refused, nothing was changed.
    """
    settings = servers_of(workspace, MigrateSettings, clickhouse=True)
    user_id = None if user is None else _user_id(user)
    terminal = EraseConsole(dry_run=dry_run, yes=yes, as_json=as_json)
    with (
        reported(settings, "run it again to resume"),
        open_servers(settings, send_receive_timeout=_ANSWER_SECONDS) as servers,
    ):
        tools = OperatorTools(settings, readers_of(settings), servers, wait, by, terminal.say)
        number, record = find(tools, project)
        if user_id is None:
            report: Report = erase_project(tools, number, record, terminal.agree)
        else:
            report = erase_user(tools, number, user_id, terminal.agree)
    remaining = left(report, settings)
    output(
        as_json,
        msgspec.to_builtins(report) | {"left": remaining},
        lambda: print_erase_report(report, remaining),
    )


class EraseConsole(msgspec.Struct, frozen=True):
    """Prints progress and prompts before anything is changed."""

    dry_run: bool
    yes: bool
    as_json: bool

    def agree(self, report: Report, question: str) -> bool:
        """Whether to go on; False for a dry run. Raises click.Abort."""
        if self.dry_run:
            return False
        if not self.yes and report.before is None:
            if not self.as_json:
                print_erase_report(report, [])
            click.confirm(question, abort=True, err=True)
        return True

    def say(self, what: str) -> None:
        """Print progress, unless the output is JSON."""
        if not self.as_json:
            click.echo(f"{what} ...", err=True)


def print_erase_report(report: Report, remaining: list[Left]) -> None:
    """Print a report for people."""
    out = console()
    if report.before is not None:
        out.print(f"erased before, at {report.before} (erasure {report.erasure})")
    elif report.erasure and not report.dry_run:
        out.print(f"erased (erasure {report.erasure})")
    heads = ("rows", "rows left", "bytes of the table", "bytes after")
    table = Table(
        Column("table", no_wrap=True),
        *(Column(head, justify="right") for head in heads),
        box=SIMPLE,
        pad_edge=False,
    )
    for row in report.tables:
        cells = (row.rows_before, row.rows_after, row.bytes_before, row.bytes_after)
        table.add_row(row.table, *(f"{cell:,}" for cell in cells))
    out.print(table)
    if isinstance(report, UserReport):
        _show_issues(report)
    if not report.dry_run and remaining:
        out.print(
            "these topics still have the records until they expire; the tables won't accept them again:"
        )
        for topic in remaining:
            out.print(f"  {topic.topic} until {topic.until[:10]}")


def _show_issues(report: UserReport) -> None:
    if report.issues:
        verb = "would get" if report.dry_run else "got"
        console().print(
            f"{len(report.issues):,} issues {verb} the text of another event: {' '.join(report.issues[:20])}"
        )


def _user_id(given: str) -> str:
    user = click.get_text_stream("stdin").readline().rstrip("\r\n") if given == "-" else given
    if not user:
        fail("the user id is empty: events without a user id can't be attributed", REFUSED_STATUS)
    try:
        user.encode()
    except UnicodeEncodeError:
        fail("the user id is not valid UTF-8", REFUSED_STATUS)
    return user
