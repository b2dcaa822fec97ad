"""`svc dashboard`: serves the read API and the pages."""

import asyncio
import logging
import os
import signal

import click
from aiohttp import web

from broker.pipeline_lag import PipelineLag
from broker.rights import needs
from broker.startup import wait_for_rights
from broker.waiting import until
from cli import long_running
from control.issue_changes import IssueChanges
from control.issue_commands import Commands
from control.project_store import ProjectStore
from dashboard.auth.access import parse_roles
from dashboard.auth.proxy_identity import parse_proxy
from dashboard.dashboard_app import build_app, build_runner
from dashboard.dependencies import Dependencies
from dashboard.http.proxies import parse_networks
from notify.history import NotificationHistory
from schemas.addresses import host_port
from schemas.errors import BadSetting, CannotRun
from schemas.settings import DashboardSettings
from storage.artifact_store import ArtifactStore
from storage.client import parse_url
from storage.read.reader import Reader
from storage.rights import ClickHouseRights, reader_rights
from storage.shards import reader_urls

_CHANGE_SECONDS = 2.0
"""A user waits: a project change that is not confirmed by then is answered with 503, as for issues."""


@click.command("dashboard")
@click.pass_context
def command(context: click.Context) -> None:
    """Serve the read API and the pages (SVC_DASHBOARD_HOST, SVC_DASHBOARD_PORT)."""
    settings = long_running.settings_of(context, DashboardSettings, _check, "admin_password")
    # It warns of each unreadable cookie, so that anyone could fill the log.
    logging.getLogger("aiohttp_session").setLevel(logging.ERROR)
    long_running.run_process(lambda: asyncio.run(serve(settings)), settings)


def _check(settings: DashboardSettings) -> None:
    parse_networks(settings.dashboard_trusted_proxies)
    parse_proxy(settings)
    parse_roles(settings.dashboard_roles)
    if not (urls := reader_urls(settings)):
        raise BadSetting("SVC_CLICKHOUSE_URL is required: http://user:password@host:port/database")
    for url in urls:
        parse_url(url)


async def serve(settings: DashboardSettings) -> None:
    """Serve until SIGTERM or SIGINT. Raises CannotRun."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    projects = ProjectStore(settings, deadline_seconds=_CHANGE_SECONDS)
    reader = Reader.open(reader_urls(settings), partial=settings.dashboard_partial_answers)
    changes, log = IssueChanges(reader, Commands(settings)), NotificationHistory(settings)
    lag = PipelineLag(settings, settings.processors_app, settings.writer_group)
    # All source maps are on the first server.
    artifacts = ArtifactStore(settings.replica_urls[0]) if settings.replica_urls else None
    app = build_app(
        settings,
        Dependencies(
            reader,
            projects,
            changes=changes,
            notifications=log.since,
            lag=lag,
            notify=log.append,
            artifacts=artifacts,
        ),
    )
    runner = build_runner(app)
    required = needs(settings)["dashboard"]
    host, port = settings.dashboard_host, settings.dashboard_port
    try:
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else error
            raise CannotRun(
                f"can't listen on {host_port(host, port)} ({reason}): set SVC_DASHBOARD_HOST and SVC_DASHBOARD_PORT"
            ) from None
        projects.start()
        stored_rights = ClickHouseRights(
            reader_urls(settings), reader_rights, spread=len(settings.shard_urls) > 1
        )
        # It names missing rights, and answers the calls that don't need them.
        await until(stop, wait_for_rights(settings, required, stored_rights))
        await stop.wait()
    finally:
        await runner.cleanup()
        await projects.stop()
        await reader.close()


if __name__ == "__main__":
    command()
