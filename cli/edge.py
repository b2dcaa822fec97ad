"""`svc edge`: runs the ingestion endpoint."""

import os
import sys
from typing import NoReturn

import click
import msgspec

from cli.logs import configure
from edge.limits.remote_window import store_error
from edge.supervisor import run
from schemas.errors import BadSetting, CannotRun
from schemas.payload import use_dictionaries
from schemas.settings import EdgeSettings, load


@click.command("edge")
@click.option("--workers", type=click.IntRange(1, 256), help="Processes that share the port.")
@click.pass_context
def command(context: click.Context, workers: int | None) -> None:
    """Accept events over HTTP and write them to Kafka."""
    environ = getattr(context.obj, "environ", None)
    try:
        settings = load(EdgeSettings, os.environ if environ is None else environ)
        use_dictionaries(settings.payload_dictionaries)
    except BadSetting as error:
        _end(str(error), 2)
    if not settings.kafka_bootstrap:
        _end("SVC_KAFKA_BOOTSTRAP is required", 2)
    if settings.rate_limit_store and (problem := store_error(settings.rate_limit_store)):
        _end(f"SVC_RATE_LIMIT_STORE: {problem}", 2)
    if workers:
        settings = msgspec.structs.replace(settings, edge_workers=workers)
    try:
        run(settings, configure)
    except CannotRun as error:
        _end(str(error), 1)


def _end(sentence: str, status: int) -> NoReturn:
    click.echo(sentence, err=True)
    sys.exit(status)


if __name__ == "__main__":
    command()
