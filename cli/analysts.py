"""`svc analysts`: connection details for analysts, and the SQL that creates one on your own server."""

import hashlib
import re
import sys

import click

from cli.command_groups import NearestGroup
from cli.console import console, settings_of
from cli.failures import BAD_SETTING_STATUS, fail
from cli.workspace import Workspace
from local.clickhouse.local_clickhouse import DATABASE, stored_url
from local.data_dir import is_locked
from schemas.errors import BadSetting
from schemas.settings import AnalystSettings, MigrateSettings
from storage.client import parse_url
from storage.tables.analyst_grants import Analyst, analyst_statements, role_statements

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


@click.group(cls=NearestGroup)
def analysts() -> None:
    """Access for people with SQL: see docs/operate/permissions.md."""


@analysts.command()
@click.pass_obj
def connect(workspace: Workspace) -> None:
    """Print how to connect to the local ClickHouse as `analyst`, password included."""
    settings = settings_of(workspace, AnalystSettings)
    try:
        url = stored_url(workspace.data_dir / "clickhouse", "analyst", settings.analyst_password)
    except FileNotFoundError:
        fail(
            "no local ClickHouse in this data directory: start `svc up`, or ask for a user on your server",
            BAD_SETTING_STATUS,
        )
    if not is_locked(workspace.data_dir):
        click.echo("svc: the server is not running: start `svc up`", err=True)
    out = console()
    for line in connection(url, settings):
        out.print(line, markup=False)


def connection(url: str, settings: AnalystSettings) -> list[str]:
    """The connection details of the local server at `url`, as lines of text."""
    address = parse_url(url)
    sees = f"projects {settings.analyst_projects}" if settings.projects else "every project"
    return [
        f"address    http://{address.host_port}  (HTTP; Grafana: protocol HTTP)",
        f"database   {address.database}",
        f"user       {address.user}  (sees {sees})",
        f"password   {address.password}",
        f"try        curl '{address.scheme}://{address.host_port}/?database={address.database}'"
        f" -u '{address.user}:{address.password}' -d 'SHOW TABLES'",
    ]


@analysts.command()
@click.argument("name")
@click.option(
    "--project",
    "projects",
    type=click.IntRange(0, (1 << 32) - 1),
    multiple=True,
    help="Restrict to this project.",
)
@click.option(
    "--database", default="", help="The service's database; by default that of SVC_CLICKHOUSE_URL, or svc."
)
@click.pass_obj
def sql(workspace: Workspace, name: str, projects: tuple[int, ...], database: str) -> None:
    """Print the statements with which an administrator creates the analyst NAME or changes its projects.

    Run them in the service's database. The password is prompted for, or read from SVC_ANALYST_PASSWORD; only
    its SHA-256 is printed.
    """
    if not NAME.fullmatch(name):
        raise click.BadParameter("letters, digits and _, not beginning with a digit", param_hint="NAME")
    settings = settings_of(workspace, AnalystSettings)
    database = database or _database(workspace)
    password = settings.analyst_password or click.prompt(
        f"Password of {name}", hide_input=sys.stdin.isatty(), confirmation_prompt=True, err=True
    )
    analyst = Analyst(name, hashlib.sha256(password.encode()).hexdigest(), projects)
    for statement in (*role_statements(database), *analyst_statements(database, analyst)):
        click.echo(statement + ";")


def _database(workspace: Workspace) -> str:
    url = settings_of(workspace, MigrateSettings).clickhouse_url
    try:
        return parse_url(url).database if url else DATABASE
    except BadSetting as error:
        fail(str(error), BAD_SETTING_STATUS)
