"""Terminal helpers of the subcommands: settings with one-line errors, JSON, tables."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn, TypeVar

import click
import msgspec
from rich.console import Console

from broker.diagnosis import why_unreachable
from broker.errors import KafkaError, KafkaTimeoutError
from broker.send_errors import SendErrorKind, kind_of
from cli.workspace import Workspace
from schemas.environment import load
from schemas.errors import BadSetting
from schemas.payload import use_dictionaries
from schemas.settings import KafkaSettings

S = TypeVar("S", bound=msgspec.Struct)

BAD_SETTING_STATUS = 2
_FILE_WIDTH = 160
_ACCESS_ERRORS = {None, 81, 194, 516}
"""ClickHouse error codes: no answer, no database, no password, wrong user or password."""
_ASK_DOCTOR = "`svc doctor --for operator` names missing rights and topics"
NO_CLICKHOUSE = "no ClickHouse: start `svc up` on this data directory, or set SVC_CLICKHOUSE_URL"


def fail(reason: str, status: int = 1) -> NoReturn:
    """End the program with one line on standard error."""
    click.echo(f"svc: {reason}", err=True)
    sys.exit(status)


def settings_of(workspace: Workspace, struct: type[S]) -> S:
    """The settings of a subcommand. Ends the program with status 2 if one is invalid."""
    try:
        settings = load(struct, workspace.environ)
        use_dictionaries(getattr(settings, "payload_dictionaries", ""))
    except BadSetting as error:
        fail(str(error), BAD_SETTING_STATUS)
    return settings


def need_kafka(bootstrap: str) -> None:
    """End the program with status 2 if no address of Kafka is known."""
    if not bootstrap:
        fail(
            "no Kafka: start `svc up` on this data directory, or set SVC_KAFKA_BOOTSTRAP", BAD_SETTING_STATUS
        )


def need_clickhouse(url: str) -> None:
    """End the program with status 2 if no address of ClickHouse is known."""
    if not url:
        fail(NO_CLICKHOUSE, BAD_SETTING_STATUS)


def kafka_failure(settings: KafkaSettings, error: Exception) -> str:
    """Why a command failed at Kafka: the reason of a failed connection (aiokafka gives none), or Kafka's error.

    Refused requests time out too, where aiokafka repeats them.
    """
    is_refusal = isinstance(error, TimeoutError | KafkaTimeoutError) or kind_of(error) is SendErrorKind.DENIED
    reason = why_unreachable(settings) or (f"{error}; {_ASK_DOCTOR}" if is_refusal else error)
    return f"Kafka at {settings.kafka_bootstrap}: {reason}"


def clickhouse_failure(url: str, error: Exception, variable: str = "SVC_CLICKHOUSE_URL") -> str:
    """Why a command failed at ClickHouse, in one line: why the address in `variable` is unusable, or the server's error."""
    # Imported here: commands without ClickHouse need not wait for its client's imports.
    from cli.doctor.clickhouse import why_refused

    # The server's own errors are more precise than ours, except these.
    finding = why_refused(url, variable) if getattr(error, "code", None) in _ACCESS_ERRORS else None
    reason = f"{finding.message}: {finding.fix}" if finding else " ".join(str(error).split())
    return f"ClickHouse: {reason}"


def kafka_hint(settings: KafkaSettings) -> str:
    """What to check after Kafka didn't confirm a change in time."""
    return str(why_unreachable(settings) or f"Kafka answers: {_ASK_DOCTOR}")


@contextmanager
def kafka_errors(settings: KafkaSettings) -> Iterator[None]:
    """Report Kafka's errors in one line, with status 1."""
    try:
        yield
    except BrokenPipeError:
        # The reader of our output has closed it (`| head`): click exits silently.
        raise
    except (KafkaError, OSError) as error:
        raise click.ClickException(kafka_failure(settings, error)) from None


def print_json(value: object) -> None:
    """Print one JSON document on standard output."""
    click.echo(msgspec.json.encode(value).decode())


def console() -> Console:
    """Standard output for people; a wide fixed width in files and pipes."""
    has_width = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(highlight=False, soft_wrap=True, width=None if has_width else _FILE_WIDTH)
