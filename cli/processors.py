"""`svc processors`: runs one worker."""

import asyncio
import signal

import click
from prometheus_client import CollectorRegistry

from cli import long_running
from cli.health_server import serving_health
from processors.faust_app.worker import run_processors
from schemas.health import Health
from schemas.settings import ProcessorsSettings
from storage.client import parse_url
from storage.read.events.stored_ids import StoredIds
from storage.rights import ClickHouseRights, reader_rights
from storage.shards import shards_of


@click.command("processors")
@click.pass_context
def command(context: click.Context) -> None:
    """Run a Faust worker: deduplicate and group events, maintain issues."""
    settings = long_running.settings_of(context, ProcessorsSettings, _check)
    long_running.run_process(lambda: asyncio.run(_main(settings)), settings)


def _check(settings: ProcessorsSettings) -> None:
    for url in settings.shard_urls:
        parse_url(url)


async def _main(settings: ProcessorsSettings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    health, registry = Health(settings.instance), CollectorRegistry()
    host, port = settings.health_host, settings.processors_health_port
    shards = shards_of(settings)
    stored_ids = StoredIds(shards, health) if shards else None
    stored_rights = (
        ClickHouseRights(settings.shard_urls, reader_rights, spread=len(shards) > 1) if shards else None
    )
    async with serving_health(host, port, "SVC_PROCESSORS_HEALTH_PORT", health, registry):
        await run_processors(settings, stop, health, registry, stored_ids, stored_rights)


if __name__ == "__main__":
    command()
