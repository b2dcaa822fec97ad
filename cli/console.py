"""Input and output of the subcommands: settings with one-line errors, and results as JSON or for people."""

import getpass
import os
import sys
from collections.abc import Callable
from typing import TypeVar

import click
import msgspec
from rich.console import Console

from cli.failures import BAD_SETTING_STATUS, fail
from cli.workspace import Workspace
from schemas.environment import load
from schemas.errors import BadSetting
from schemas.settings import KafkaSettings

S = TypeVar("S", bound=msgspec.Struct)
K = TypeVar("K", bound=KafkaSettings)

_FILE_WIDTH = 160
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
NO_KAFKA = "no Kafka: start `svc up` on this data directory, or set SVC_KAFKA_BOOTSTRAP"
NO_CLICKHOUSE = "no ClickHouse: start `svc up` on this data directory, or set SVC_CLICKHOUSE_URL"


def settings_of(workspace: Workspace, struct: type[S]) -> S:
    """The settings of a subcommand. Ends the program with status 2 if one is invalid."""
    try:
        return load(struct, workspace.environ)
    except BadSetting as error:
        fail(str(error), BAD_SETTING_STATUS)


def servers_of(workspace: Workspace, struct: type[K], *, clickhouse: bool = False) -> K:
    """The settings of a subcommand that works with Kafka, or with ClickHouse too.

    Ends the program with status 2 if one is invalid, or if no address is known.
    """
    settings = settings_of(workspace, struct)
    if not settings.kafka_bootstrap:
        fail(NO_KAFKA, BAD_SETTING_STATUS)
    if clickhouse and not getattr(settings, "clickhouse_url", ""):
        fail(NO_CLICKHOUSE, BAD_SETTING_STATUS)
    return settings


def current_user() -> str:
    """The name of the current user; in a container there may be none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "svc"


def output(as_json: bool, document: object, show: Callable[[], object]) -> None:
    """Print a result on standard output: as one JSON document, or for people by `show`."""
    if as_json:
        print_json(document)
    else:
        show()


def print_json(value: object) -> None:
    """Print one JSON document on standard output."""
    click.echo(msgspec.json.encode(value).decode())


def console() -> Console:
    """Standard output for people; a wide fixed width in files and pipes."""
    has_width = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(highlight=False, soft_wrap=True, width=None if has_width else _FILE_WIDTH)
