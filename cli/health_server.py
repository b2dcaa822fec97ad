"""HTTP server for `healthz`, `readyz` and `metrics` of processes without another one (contract, section 1)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from broker.process_metrics import add_process_metrics
from schemas.addresses import host_port
from schemas.errors import CannotRun
from schemas.health import Health


def health_app(health: Health, registry: CollectorRegistry) -> web.Application:
    """The application with the three paths; `readyz` answers 503 until every component works."""

    async def healthz(_request: web.Request) -> web.Response:
        return web.json_response({"alive": True})

    async def readyz(_request: web.Request) -> web.Response:
        readiness = health.readiness()
        return web.Response(
            body=msgspec.json.encode(readiness),
            content_type="application/json",
            status=200 if readiness.ready else 503,
        )

    async def metrics(_request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def hide_versions(_request: web.Request, response: web.StreamResponse) -> None:
        response.headers["Server"] = "svc"

    app = web.Application()
    app.on_response_prepare.append(hide_versions)
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", metrics)
    return app


@asynccontextmanager
async def serving_health(
    host: str, port: int, setting: str, health: Health, registry: CollectorRegistry
) -> AsyncIterator[int]:
    """Listen while the block runs; yields the port (a free one for 0). Raises CannotRun, naming the port's setting."""
    add_process_metrics(registry)
    runner = web.AppRunner(health_app(health, registry), access_log=None, handle_signals=False)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise CannotRun(f"can't listen on {host_port(host, port)} ({setting}): {error}") from None
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()
