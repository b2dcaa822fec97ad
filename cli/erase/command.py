"""`svc erase`: takes one user's events, or a whole project, out of every table, and says what was there."""

import getpass
import sys
from typing import Final, NoReturn

import click
import msgspec
from rich.box import SIMPLE
from rich.table import Column, Table

from broker.consumer_lag import readers
from broker.errors import KafkaError
from cli.console import (
    clickhouse_failure,
    console,
    kafka_failure,
    kafka_hint,
    need_kafka,
    print_json,
    settings_of,
)
from cli.erase.beside_tables import (
    EraseRefused,
    EraseTools,
    Left,
    NotSettled,
    Report,
    erase_project,
    erase_user,
    find,
    left,
)
from cli.workspace import Workspace
from schemas.errors import ChangesUnavailable, ProjectsUnavailable
from schemas.settings import MigrateSettings, ProcessorsSettings, WriterSettings
from storage.client import ClickHouseError, open_client
from storage.erase.user import UserReport

FAILED: Final = 1
REFUSED: Final = 2
_ANSWER_SECONDS: Final = 3600
"""Whole tables may be looked through for a user."""


@click.command()
@click.option("--project", required=True, help="The project's id or name.")
@click.option(
    "--user", help="A user's id as in user.id; `-` reads it from the input. Unset: the whole project."
)
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--dry-run", is_flag=True, help="Say what would be erased; change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--by", default=getpass.getuser, help="Who erases, for the record; by default the user.")
@click.option(
    "--wait",
    default=60.0,
    show_default=True,
    help="Seconds for the pipeline to store what was accepted before.",
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

    Repeat it if it was interrupted: it goes on. Exit status 1: not done, or not wholly; 2: refused, nothing was changed.
    """
    settings = settings_of(workspace, MigrateSettings)
    need_kafka(settings.kafka_bootstrap)
    if not settings.clickhouse_url:
        _end("no ClickHouse: start `svc up` on this data directory, or set SVC_CLICKHOUSE_URL", REFUSED)
    wanted = None if user is None else _user_id(user)
    asker = EraseConsole(dry_run=dry_run, yes=yes, as_json=as_json)
    groups = readers(
        settings_of(workspace, ProcessorsSettings).processors_app,
        settings_of(workspace, WriterSettings).writer_group,
    )
    try:
        client = open_client(settings.clickhouse_url, send_receive_timeout=_ANSWER_SECONDS)
        try:
            tools = EraseTools(settings, groups, client, wait, by, asker.say)
            number, record = find(tools, project)
            if wanted is None:
                report: Report = erase_project(tools, number, record, asker.agree)
            else:
                report = erase_user(tools, number, wanted, asker.agree)
        finally:
            client.close()
    except EraseRefused as refusal:
        _end(str(refusal), REFUSED)
    except NotSettled as error:
        _end(f"{error}; run it again", FAILED)
    except ChangesUnavailable as error:
        _end(f"{error}; run it again, it goes on where it stopped", FAILED)
    except ProjectsUnavailable as error:
        _end(f"{error}; {kafka_hint(settings)}", FAILED)
    except KafkaError as error:
        _end(f"{kafka_failure(settings, error)}; run it again", FAILED)
    except ClickHouseError as error:
        said = clickhouse_failure(settings.clickhouse_url, error)
        _end(f"{said}; run it again, it goes on where it stopped", FAILED)
    kept = left(report, settings)
    if as_json:
        print_json(msgspec.to_builtins(report) | {"left": kept})
    else:
        show(report, kept)


class EraseConsole(msgspec.Struct, frozen=True):
    """Tells how far it is, and asks before anything is changed."""

    dry_run: bool
    yes: bool
    as_json: bool

    def agree(self, report: Report, question: str) -> bool:
        """Whether to go on; False for a dry run. Raises click.Abort."""
        if self.dry_run:
            return False
        if not self.yes and report.before is None:
            if not self.as_json:
                show(report, [])
            click.confirm(question, abort=True, err=True)
        return True

    def say(self, what: str) -> None:
        """A line about the work, where people look on."""
        if not self.as_json:
            click.echo(f"{what} ...", err=True)


def show(report: Report, kept: list[Left]) -> None:
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
    for one in report.tables:
        cells = (one.rows_before, one.rows_after, one.bytes_before, one.bytes_after)
        table.add_row(one.table, *(f"{cell:,}" for cell in cells))
    out.print(table)
    if isinstance(report, UserReport):
        _show_issues(report)
    if not report.dry_run and kept:
        out.print(
            "until they expire, these topics still hold what came before; the tables take none of it again:"
        )
        for one_left in kept:
            out.print(f"  {one_left.topic} until {one_left.until[:10]}")


def _show_issues(report: UserReport) -> None:
    if report.issues:
        what = "would get" if report.dry_run else "got"
        out = console()
        out.print(
            f"{len(report.issues):,} issues {what} the text of another event: {' '.join(report.issues[:20])}"
        )


def _user_id(given: str) -> str:
    user = click.get_text_stream("stdin").readline().rstrip("\r\n") if given == "-" else given
    if not user:
        _end("a user has an id: events without one can't be told apart", REFUSED)
    try:
        user.encode()
    except UnicodeEncodeError:
        _end("the user's id is not valid UTF-8", REFUSED)
    return user


def _end(reason: str, status: int) -> NoReturn:
    click.echo(f"svc: {reason}", err=True)
    sys.exit(status)
