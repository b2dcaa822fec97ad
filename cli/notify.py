"""`svc notify`: tells people what happens to issues, by the rules of their projects."""

import logging

import click
from prometheus_client import CollectorRegistry

from broker import event_loop
from cli import process
from cli.health_server import serving_health
from notify.channels import channel_settings
from notify.metrics import NotifyMetrics
from notify.process import run
from schemas.health import Health
from schemas.settings import NotifySettings
from storage.client import parse_url
from storage.shards import reader_urls


@click.command("notify")
@click.pass_context
def command(context: click.Context) -> None:
    """Send notifications by the rules of projects: mail, chat, webhooks."""
    settings = process.settings_of(context, NotifySettings, _check)
    # Each failed attempt is logged once, with its reason.
    logging.getLogger("apprise").setLevel(logging.CRITICAL)
    process.run(lambda: event_loop.run(_main(settings)), settings)


def _check(settings: NotifySettings) -> None:
    channel_settings(settings.notify_channels)
    for url in reader_urls(settings):
        parse_url(url)


async def _main(settings: NotifySettings) -> None:
    health, metrics = Health(settings.instance), NotifyMetrics(CollectorRegistry())
    host, port = settings.health_host, settings.notify_health_port
    async with serving_health(host, port, "SVC_NOTIFY_HEALTH_PORT", health, metrics.registry):
        await run(settings, health, metrics)


if __name__ == "__main__":
    command()
