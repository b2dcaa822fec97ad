"""`svc writer`: writes grouped events, issues, activity and outcomes from Kafka to ClickHouse."""

import asyncio
import logging
from typing import Final

import click
from prometheus_client import CollectorRegistry

from broker import event_loop
from cli import long_running
from cli.health_server import serving_health
from schemas.health import Health
from schemas.settings import WriterSettings
from storage.client import parse_url
from storage.server_watch import PART, watch_servers
from storage.shards import shards_of
from storage.write.writer_metrics import WriterMetrics
from storage.write.writer_process import run_writer

_OF_A_SERVER: Final = ("events", "issues", "projects", "retention", PART)
"""Parts that each server has. If one is down, only its partitions wait, and writers still restart."""


@click.command("writer")
@click.pass_context
def command(context: click.Context) -> None:
    """Write the processors' results to ClickHouse, each event once."""
    settings = long_running.settings_of(context, WriterSettings, _check, "clickhouse_url")
    for name in ("clickhouse_connect", "urllib3"):
        # The retrying component logs each failure once, with the reason.
        logging.getLogger(name).setLevel(logging.CRITICAL)
    long_running.run_process(lambda: event_loop.run(_main(settings)), settings)


def _check(settings: WriterSettings) -> None:
    for url in settings.shard_urls:
        parse_url(url)


async def _main(settings: WriterSettings) -> None:
    health, metrics = Health(settings.instance), WriterMetrics(CollectorRegistry())
    host, port = settings.health_host, settings.writer_health_port
    shards = shards_of(settings)
    for part in _OF_A_SERVER:
        health.tolerate({shard.named(part) for shard in shards})
    async with serving_health(host, port, "SVC_WRITER_HEALTH_PORT", health, metrics.registry):
        watching = asyncio.create_task(watch_servers(shards, health, metrics.waiting))
        try:
            await run_writer(settings, health, metrics)
        finally:
            watching.cancel()


if __name__ == "__main__":
    command()
