"""`svc edge`: runs the ingestion endpoint."""

import click
import msgspec

from cli import long_running
from cli.logs import configure
from edge.edge_supervisor import run_edge
from edge.limits.remote_window import store_error
from schemas.errors import BadSetting
from schemas.settings import EdgeSettings


@click.command("edge")
@click.option("--workers", type=click.IntRange(1, 256), help="Processes that share the port.")
@click.pass_context
def command(context: click.Context, workers: int | None) -> None:
    """Accept events over HTTP and write them to Kafka."""
    settings = long_running.settings_of(context, EdgeSettings, _check)
    if workers:
        settings = msgspec.structs.replace(settings, edge_workers=workers)
    long_running.run_process(lambda: run_edge(settings, configure), settings, collect=True)


def _check(settings: EdgeSettings) -> None:
    if settings.rate_limit_store and (problem := store_error(settings.rate_limit_store)):
        raise BadSetting(f"SVC_RATE_LIMIT_STORE: {problem}")


if __name__ == "__main__":
    command()
