"""`svc dashboard`: serves the read API and the pages."""

import asyncio
import errno
import logging
import os
import signal
import sys
from collections.abc import Mapping

import click
from aiohttp import web

from broker.rights import needs
from broker.rights_watch import watch_rights
from broker.waiting import until
from cli.logs import configure
from control.issue_changes import IssueChanges
from control.issue_commands import Commands
from control.project_store import ProjectStore
from dashboard.app import build_app, build_runner
from dashboard.dependencies import STATE, Dependencies
from dashboard.http.proxies import parse_networks
from schemas.errors import BadSetting
from schemas.payload import use_dictionaries
from schemas.settings import DashboardSettings, load
from storage.client import parse_url
from storage.reader.reader import Reader
from storage.rights import ClickHouseRights, reader_rights

BAD_SETTING_STATUS = 2
NOT_STARTED_STATUS = 3
_CHANGE_SECONDS = 2.0
"""A user waits: a project change that is not confirmed by then is answered with 503, as for issues."""


@click.command("dashboard")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Serve the read API and the pages (SVC_DASHBOARD_HOST, SVC_DASHBOARD_PORT)."""
    environ: Mapping[str, str] = getattr(ctx.obj, "environ", os.environ)
    try:
        settings = load(DashboardSettings, environ)
        _check(settings)
        use_dictionaries(settings.payload_dictionaries)
    except BadSetting as error:
        click.echo(f"svc: {error}", err=True)
        sys.exit(BAD_SETTING_STATUS)
    configure(settings.log_level)
    # It warns of each unreadable cookie, so that anyone could fill the log.
    logging.getLogger("aiohttp_session").setLevel(logging.ERROR)
    try:
        asyncio.run(serve(settings))
    except OSError as error:
        if error.errno not in {errno.EADDRINUSE, errno.EACCES, errno.EADDRNOTAVAIL}:
            raise
        click.echo(
            f"svc: can't listen on {settings.dashboard_host}:{settings.dashboard_port} ({os.strerror(error.errno)}): "
            "set SVC_DASHBOARD_HOST and SVC_DASHBOARD_PORT",
            err=True,
        )
        sys.exit(NOT_STARTED_STATUS)


def _check(settings: DashboardSettings) -> None:
    if not settings.admin_password:
        raise BadSetting("SVC_ADMIN_PASSWORD must not be empty")
    if not settings.kafka_bootstrap:
        raise BadSetting("SVC_KAFKA_BOOTSTRAP is required: host:port of Kafka")
    parse_networks(settings.dashboard_trusted_proxies)
    url = settings.clickhouse_reader_url or settings.clickhouse_url
    if not url:
        raise BadSetting("SVC_CLICKHOUSE_URL is required: http://user:password@host:port/database")
    parse_url(url)


async def serve(settings: DashboardSettings) -> None:
    """Serve until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    projects = ProjectStore(settings, deadline_seconds=_CHANGE_SECONDS)
    url = settings.clickhouse_reader_url or settings.clickhouse_url
    reader = Reader.open(url)
    app = build_app(
        settings, Dependencies(reader, projects, changes=IssueChanges(reader, Commands(settings)))
    )
    state, runner, required = app[STATE], build_runner(app), needs("", "", grouped_events=False)["dashboard"]
    try:
        await runner.setup()
        await web.TCPSite(runner, settings.dashboard_host, settings.dashboard_port).start()
        projects.start()
        stored_rights = ClickHouseRights(url, reader_rights)
        await until(
            stop, watch_rights(settings, required, state.health, state.metrics.registry, stored_rights)
        )
    finally:
        await runner.cleanup()
        await projects.stop()
        await reader.close()


if __name__ == "__main__":
    command()
