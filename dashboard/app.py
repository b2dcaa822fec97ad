"""The application: middlewares in their order, the API, the pages, and what watches the parts."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from aiohttp import web

from dashboard import probes
from dashboard.api.operation import add_operations
from dashboard.api.routes import OPERATIONS
from dashboard.auth import authenticate
from dashboard.changing import forget_what_was
from dashboard.errors import answer_errors
from dashboard.headers import secure
from dashboard.metrics import Metrics, counting
from dashboard.openapi import serve_document
from dashboard.pages.render import environment
from dashboard.pages.routes import add_pages
from dashboard.parts import STATE, Parts, State, is_https
from dashboard.paths import OPENAPI
from dashboard.proxies import parse_networks
from dashboard.server import Runner
from dashboard.session import Secrets, SignedOut, keeping_sessions
from dashboard.shared import Shared
from dashboard.throttle import SignInThrottle
from dashboard.trials import Trials
from schemas.health import Health
from schemas.settings import DashboardSettings

STATIC: Final = Path(__file__).parent / "static"
MAX_BODY_BYTES: Final = 1_048_576
MAX_ADDRESS_BYTES: Final = 65_536
"""Longest request line: a query of 4,000 characters may take 12 bytes each when it is escaped."""


def build_app(settings: DashboardSettings, parts: Parts) -> web.Application:
    """The dashboard as an application; it starts nothing but the watch over ClickHouse, and stops that by itself. Raises BadSetting."""
    secrets, metrics = Secrets(settings), Metrics()
    app = web.Application(
        middlewares=[
            counting(metrics),
            secure,
            answer_errors,
            keeping_sessions(secrets.storage(settings), is_https),
            authenticate,
            forget_what_was,
        ],
        client_max_size=MAX_BODY_BYTES,
    )
    health = Health(settings.instance)
    probes.watch_projects(health, parts)
    app[STATE] = State(
        settings,
        parts,
        secrets,
        environment(),
        health,
        metrics,
        SignInThrottle(),
        parse_networks(settings.dashboard_trusted_proxies),
        SignedOut(),
        Shared(settings.dashboard_share_seconds),
        Trials(),
    )
    app.cleanup_ctx.append(_watch)
    app.router.add_get("/healthz", probes.healthz)
    app.router.add_get("/readyz", probes.readyz)
    app.router.add_get("/metrics", probes.metrics)
    app.router.add_get(OPENAPI, serve_document(OPERATIONS))
    app.router.add_static("/static", STATIC)
    add_operations(app, OPERATIONS)
    add_pages(app)
    return app


def build_runner(app: web.Application) -> web.AppRunner:
    """What serves the application; its owner sets it up and cleans it up."""
    return Runner(
        app, access_log=None, handle_signals=False, shutdown_timeout=5, max_line_size=MAX_ADDRESS_BYTES
    )


async def _watch(app: web.Application) -> AsyncIterator[None]:
    state = app[STATE]
    stop = asyncio.Event()
    watching = probes.watch_clickhouse(state.health, state.parts, stop)
    task = asyncio.create_task(watching, name="watch clickhouse")
    yield
    await probes.stop_watching(task, stop)
    state.trials.close()
