"""`svc processors`: runs one worker."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping
from typing import NoReturn

import click
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from cli.health_server import serving_health
from cli.logs import configure
from processors.faust_app.worker import run
from schemas.errors import BadSetting, CannotRun
from schemas.health import Health
from schemas.payload import use_dictionaries
from schemas.settings import ProcessorsSettings, load
from storage.client import parse_url
from storage.reader.stored_ids import StoredIds
from storage.rights import ClickHouseRights, reader_rights


@click.command(help="Run a Faust worker: deduplicate and group events, maintain issues.")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Run until SIGTERM or SIGINT. Exit codes: 2 for a bad setting, 1 for a failure."""
    environ = getattr(ctx.obj, "environ", None) or os.environ
    try:
        settings = _settings(environ)
        use_dictionaries(settings.payload_dictionaries)
    except BadSetting as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    configure(settings.log_level)
    status = 0
    try:
        asyncio.run(_main(settings))
    except CannotRun as error:
        logging.getLogger(__name__).critical("the worker stops: %s", error)
        status = 1
    _exit(status)


def _exit(status: int) -> NoReturn:
    """Exit without the interpreter's cleanup.

    Everything is written and closed by now. After a failure, objects in its traceback would outlive the sketches' library,
    which then lists each of its functions on standard error.
    """
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _settings(environ: Mapping[str, str]) -> ProcessorsSettings:
    settings = load(ProcessorsSettings, environ)
    if not settings.kafka_bootstrap:
        raise BadSetting("SVC_KAFKA_BOOTSTRAP is required")
    if settings.clickhouse_url:
        parse_url(settings.clickhouse_url)
    return settings


async def _main(settings: ProcessorsSettings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    health, registry = Health(settings.instance), CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    host, port = settings.processors_health_host, settings.processors_health_port
    url = settings.clickhouse_url
    stored_ids = StoredIds(url, health) if url else None
    stored_rights = ClickHouseRights(url, reader_rights) if url else None
    async with serving_health(host, port, "SVC_PROCESSORS_HEALTH_PORT", health, registry):
        await run(settings, stop, health, registry, stored_ids, stored_rights)


if __name__ == "__main__":
    command()
