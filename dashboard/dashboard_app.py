"""The application: middlewares, API, pages and the health watch."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from aiohttp import web

from dashboard import dashboard_health
from dashboard.api.api_routes import OPERATIONS
from dashboard.api.openapi_document import serve_document
from dashboard.api.operation import add_operations
from dashboard.auth.access import parse_roles
from dashboard.auth.auth import authenticate
from dashboard.auth.proxy_identity import parse_proxy
from dashboard.auth.session import RevokedSessions, Secrets, session_middleware
from dashboard.auth.throttle import SignInThrottle
from dashboard.bulk_changes import BulkChanges
from dashboard.dependencies import STATE, Dependencies, State, is_https
from dashboard.error_boundary import answer_errors
from dashboard.http.headers import add_headers
from dashboard.http.http_metrics import DashboardMetrics, metrics_middleware
from dashboard.http.http_server import Runner
from dashboard.http.paths import OPENAPI
from dashboard.http.proxies import parse_networks
from dashboard.javascript_library import javascript_modules, javascript_package
from dashboard.kept_reads import KeptReads, assigned_people, newest_releases
from dashboard.library_files import add_library_files
from dashboard.library_wheel import library_wheel
from dashboard.pages.page_routes import add_pages
from dashboard.pages.render import environment
from dashboard.trial_queue import TrialQueue
from schemas.health import Health
from schemas.settings import DashboardSettings
from sourcemaps.resolver import Resolver

STATIC: Final = Path(__file__).parent / "static"
MAX_BODY_BYTES: Final = 1_048_576
MAX_LINE_BYTES: Final = 65_536
"""A query of 4,000 characters may take 12 bytes per character when escaped. A header may name hundreds of groups."""


def build_app(settings: DashboardSettings, dependencies: Dependencies) -> web.Application:
    """The application, which starts and stops the watches of ClickHouse and of the pipeline's lag.

    Raises BadSetting.
    """
    secrets, metrics = Secrets(settings), DashboardMetrics()
    app = web.Application(
        middlewares=[
            metrics_middleware(metrics),
            add_headers,
            # Outside, because error pages have forms too: a session that begins with one is kept.
            session_middleware(secrets.storage(settings), is_https),
            answer_errors,
            authenticate,
        ],
        client_max_size=MAX_BODY_BYTES,
    )
    readiness = Health(settings.instance)
    dashboard_health.watch_projects(readiness, dependencies)
    app[STATE] = State(
        settings,
        dependencies,
        secrets,
        environment(),
        readiness,
        metrics,
        SignInThrottle(),
        parse_networks(settings.dashboard_trusted_proxies),
        parse_proxy(settings),
        parse_roles(settings.dashboard_roles),
        RevokedSessions(),
        TrialQueue(),
        BulkChanges(),
        KeptReads(newest_releases),
        KeptReads(assigned_people),
        Resolver(dependencies.reader),
    )
    app.cleanup_ctx.append(_watch)
    app.router.add_get("/healthz", dashboard_health.healthz)
    app.router.add_get("/readyz", dashboard_health.readyz)
    app.router.add_get("/metrics", dashboard_health.metrics)
    app.router.add_get(OPENAPI, serve_document(OPERATIONS))
    app.router.add_static("/static", STATIC)
    add_library_files(app, [library_wheel(), javascript_package(), *javascript_modules()])
    add_operations(app, OPERATIONS)
    add_pages(app)
    return app


def build_runner(app: web.Application) -> web.AppRunner:
    """The runner that serves the application; the caller sets it up and cleans it up."""
    return Runner(
        app,
        access_log=None,
        handle_signals=False,
        shutdown_timeout=5,
        max_line_size=MAX_LINE_BYTES,
        max_field_size=MAX_LINE_BYTES,
    )


async def _watch(app: web.Application) -> AsyncIterator[None]:
    state = app[STATE]
    stop = asyncio.Event()
    watching = dashboard_health.watch_clickhouse(state.health, state.dependencies, stop)
    task = asyncio.create_task(watching, name="watch clickhouse")
    lag = state.dependencies.lag
    looking = asyncio.create_task(lag.run(), name="look at the lag") if lag is not None else None
    yield
    if looking is not None:
        looking.cancel()
        await asyncio.wait([looking])
    await dashboard_health.stop_watching(task, stop)
    await state.bulk.cancel_changes()
    await state.releases.cancel_reads()
    await state.assignees.cancel_reads()
    await state.resolver.close()
    state.trials.stop_thread()
