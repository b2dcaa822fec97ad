"""What the subcommands share at the terminal: settings read with one-line complaints, JSON and tables out."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import click
import msgspec
from rich.console import Console

from broker.diagnosis import why_unreachable
from broker.errors import KafkaError
from cli.workspace import Workspace
from schemas.errors import BadSetting
from schemas.payload import use_dictionaries
from schemas.settings import KafkaSettings, load

S = TypeVar("S", bound=msgspec.Struct)

BAD_SETTING_STATUS = 2
_FILE_WIDTH = 160
_KEPT_OUT = {None, 194, 516}
"""Codes of ClickHouse's errors: no answer, no password, wrong user or password."""


def settings_of(workspace: Workspace, struct: type[S]) -> S:
    """The settings that a subcommand needs. Ends the program with one line and status 2 when one is bad."""
    try:
        settings = load(struct, workspace.environ)
        use_dictionaries(getattr(settings, "payload_dictionaries", ""))
    except BadSetting as error:
        click.echo(f"svc: {error}", err=True)
        sys.exit(BAD_SETTING_STATUS)
    return settings


def need_kafka(bootstrap: str) -> None:
    """End the program with a line that says how Kafka is found, when no address is known."""
    if not bootstrap:
        click.echo(
            "svc: no Kafka: start `svc up` on this data directory, or set SVC_KAFKA_BOOTSTRAP", err=True
        )
        sys.exit(BAD_SETTING_STATUS)


def kafka_failure(settings: KafkaSettings, error: Exception) -> str:
    """Why a command failed at Kafka: what keeps us out (aiokafka doesn't say), or what it refused."""
    return f"Kafka at {settings.kafka_bootstrap}: {why_unreachable(settings) or error}"


def clickhouse_failure(url: str, error: Exception, variable: str = "SVC_CLICKHOUSE_URL") -> str:
    """Why a command failed at ClickHouse: what keeps us out by the address in `variable`, or what it refused, in one line."""
    # Only here: commands that never speak with ClickHouse would wait for its client's imports.
    from cli.doctor.clickhouse import why_refused

    # An answer of the server says more than we would, but for those to a wrong user or password.
    finding = why_refused(url, variable) if getattr(error, "code", None) in _KEPT_OUT else None
    said = f"{finding.said}: {finding.mend}" if finding else " ".join(str(error).split())
    return f"ClickHouse: {said}"


def kafka_hint(settings: KafkaSettings) -> str:
    """What to look at after a change that Kafka did not confirm in time."""
    return str(why_unreachable(settings) or "is Kafka up, and has `svc migrate` run?")


@contextmanager
def kafka_errors(settings: KafkaSettings) -> Iterator[None]:
    """Tell of Kafka that doesn't answer, or of what it refuses, in one line, with status 1."""
    try:
        yield
    except BrokenPipeError:
        # Who reads our output has read enough (`| head`): click ends us quietly.
        raise
    except (KafkaError, OSError) as error:
        raise click.ClickException(kafka_failure(settings, error)) from None


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    click.echo(msgspec.json.encode(value).decode())


def console() -> Console:
    """Standard output for people; what goes to a file or a pipe is not folded to the width of a terminal."""
    fits = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(highlight=False, soft_wrap=True, width=None if fits else _FILE_WIDTH)
