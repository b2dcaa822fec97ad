"""`svc writer`: writes grouped events, issues, activity and outcomes from Kafka to ClickHouse."""

import logging
import os
import sys
from collections.abc import Mapping

import click
from prometheus_client import CollectorRegistry

from broker import event_loop
from cli.health_server import serving_health
from cli.logs import configure
from schemas.errors import BadSetting, CannotRun
from schemas.health import Health
from schemas.payload import use_dictionaries
from schemas.settings import WriterSettings, load
from storage.client import parse_url
from storage.writer.metrics import WriterMetrics
from storage.writer.process import run


@click.command("writer")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Write the processors' results to ClickHouse, each event once."""
    try:
        settings = checked(getattr(ctx.obj, "environ", os.environ))
        use_dictionaries(settings.payload_dictionaries)
    except BadSetting as error:
        click.echo(f"svc: {error}", err=True)
        sys.exit(2)
    configure(settings.log_level)
    for name in ("clickhouse_connect", "urllib3"):
        # The retrying component logs each failure once, with the reason.
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        event_loop.run(_main(settings))
    except CannotRun as error:
        logging.getLogger(__name__).critical("the writer stops: %s", error)
        sys.exit(1)
    except Exception:
        logging.getLogger(__name__).critical(
            "the writer stops: its state is in Kafka, start it again", exc_info=True
        )
        sys.exit(1)


async def _main(settings: WriterSettings) -> None:
    health, metrics = Health(settings.instance), WriterMetrics(CollectorRegistry())
    host, port = settings.writer_health_host, settings.writer_health_port
    async with serving_health(host, port, "SVC_WRITER_HEALTH_PORT", health, metrics.registry):
        await run(settings, health, metrics)


def checked(environ: Mapping[str, str]) -> WriterSettings:
    """The writer's settings, with both servers required. Raises BadSetting."""
    settings = load(WriterSettings, environ)
    for name in ("kafka_bootstrap", "clickhouse_url"):
        if not getattr(settings, name):
            raise BadSetting(f"SVC_{name.upper()} is required")
    parse_url(settings.clickhouse_url)
    return settings


if __name__ == "__main__":
    command()
