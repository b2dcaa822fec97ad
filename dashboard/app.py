"""The application: middlewares in their order, the API, the pages, and what watches the parts."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from aiohttp import web

from dashboard.api.operation import add_operations
from dashboard.api.routes import OPERATIONS
from dashboard.auth.auth import authenticate
from dashboard.auth.session import Secrets, SignedOut, keeping_sessions
from dashboard.auth.throttle import SignInThrottle
from dashboard.dependencies import STATE, Dependencies, State, is_https
from dashboard.http import health
from dashboard.http.error_boundary import answer_errors
from dashboard.http.headers import secure
from dashboard.http.metrics import DashboardMetrics, counting
from dashboard.http.openapi import serve_document
from dashboard.http.paths import OPENAPI
from dashboard.http.proxies import parse_networks
from dashboard.http.server import Runner
from dashboard.pages.render import environment
from dashboard.pages.routes import add_pages
from dashboard.read_your_writes import forget_what_was
from dashboard.response_cache import ResponseCache
from dashboard.trial_queue import TrialQueue
from schemas.health import Health
from schemas.settings import DashboardSettings

STATIC: Final = Path(__file__).parent / "static"
MAX_BODY_BYTES: Final = 1_048_576
MAX_ADDRESS_BYTES: Final = 65_536
"""Longest request line: a query of 4,000 characters may take 12 bytes each when it is escaped."""


def build_app(settings: DashboardSettings, parts: Dependencies) -> web.Application:
    """The dashboard as an application; it starts nothing but the watch over ClickHouse, and stops that by itself. Raises BadSetting."""
    secrets, metrics = Secrets(settings), DashboardMetrics()
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
    readiness = Health(settings.instance)
    health.watch_projects(readiness, parts)
    app[STATE] = State(
        settings,
        parts,
        secrets,
        environment(),
        readiness,
        metrics,
        SignInThrottle(),
        parse_networks(settings.dashboard_trusted_proxies),
        SignedOut(),
        ResponseCache(settings.dashboard_share_seconds),
        TrialQueue(),
    )
    app.cleanup_ctx.append(_watch)
    app.router.add_get("/healthz", health.healthz)
    app.router.add_get("/readyz", health.readyz)
    app.router.add_get("/metrics", health.metrics)
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
    watching = health.watch_clickhouse(state.health, state.parts, stop)
    task = asyncio.create_task(watching, name="watch clickhouse")
    yield
    await health.stop_watching(task, stop)
    state.trials.close()
