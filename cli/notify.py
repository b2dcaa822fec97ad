"""`svc notify`: sends notifications about issues, by the rules of their projects."""

import asyncio
import logging
import secrets

import click
from prometheus_client import CollectorRegistry

from broker import event_loop
from cli import long_running
from cli.command_groups import NearestGroup
from cli.failures import fail
from cli.health_server import serving_health
from notify.channels import channel_settings, refusal_of
from notify.describer import clock_ms
from notify.notifier import run_notify
from notify.notify_metrics import NotifyMetrics
from notify.readable_message import written
from notify.rule_queue import channel_test
from schemas.health import Health
from schemas.notifications import ChannelTestRecord
from schemas.settings import NotifySettings
from storage.client import parse_url
from storage.shards import reader_urls


@click.group("notify", cls=NearestGroup, invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """Send notifications by the rules of projects: mail, chat, webhooks."""
    if context.invoked_subcommand is not None:
        return
    settings = long_running.settings_of(context, NotifySettings, _check)
    # Each failed attempt is logged once, with its reason.
    logging.getLogger("apprise").setLevel(logging.CRITICAL)
    long_running.run_process(lambda: event_loop.run(_main(settings)), settings)


@command.command()
@click.argument("channel")
@click.option("--to", multiple=True, metavar="ADDRESS", help="Recipients, for a channel that needs some.")
@click.pass_context
def test(context: click.Context, /, channel: str, to: tuple[str, ...]) -> None:
    """Send a test message through CHANNEL of SVC_NOTIFY_CHANNELS."""
    settings = long_running.settings_of(context, NotifySettings, _check)
    known = channel_settings(settings.notify_channels)
    if channel not in known:
        fail(f"SVC_NOTIFY_CHANNELS has no channel {channel}; it has: {', '.join(sorted(known)) or 'none'}")
    logging.getLogger("apprise").setLevel(logging.CRITICAL)
    record = ChannelTestRecord(clock_ms(), secrets.token_hex(8), "0", channel, to)
    message = written(channel_test(record), "test", {}, "")
    if refusal := asyncio.run(refusal_of(known[channel], message, settings.notify_seconds)):
        fail(f"not delivered: {refusal}")
    click.echo(f"{channel} took the message.")


def _check(settings: NotifySettings) -> None:
    channel_settings(settings.notify_channels)
    for url in reader_urls(settings):
        parse_url(url)


async def _main(settings: NotifySettings) -> None:
    health, metrics = Health(settings.instance), NotifyMetrics(CollectorRegistry())
    host, port = settings.health_host, settings.notify_health_port
    async with serving_health(host, port, "SVC_NOTIFY_HEALTH_PORT", health, metrics.registry):
        await run_notify(settings, health, metrics)


if __name__ == "__main__":
    command()
