"""Liveness, readiness and metrics (contract, section 1): public, without user data."""

import asyncio
import logging
from contextlib import suppress
from typing import Final

from aiohttp import web
from msgspec import Struct

from broker.waiting import pause
from dashboard.dependencies import Dependencies, state_of
from dashboard.http.responses import json_response
from schemas.health import Health, Part
from storage.errors import ReadError

log = logging.getLogger(__name__)
PING_SECONDS: Final = 2.0
STOP_SECONDS: Final = 1.0


class Alive(Struct, frozen=True):
    """Body of `healthz`."""

    alive: bool = True


async def healthz(_request: web.Request) -> web.Response:
    """The process answers."""
    return json_response(Alive())


async def readyz(request: web.Request) -> web.Response:
    """503 until every dependency works."""
    readiness = state_of(request).health.readiness()
    return json_response(readiness, 200 if readiness.ready else 503)


async def metrics(request: web.Request) -> web.Response:
    """Metrics in Prometheus' text format."""
    return state_of(request).metrics.text()


def watch_projects(health: Health, dependencies: Dependencies) -> None:
    """Report `projects` as ready once the topic has been read.

    An unreachable broker only shows in the detail: pages still work and only changes fail, so the dashboard
    stays ready.
    """
    projects = dependencies.projects

    def probe() -> Part:
        if not projects.loaded:
            return Part(ok=False, detail="the projects topic has not been read yet")
        return Part(ok=True, detail=projects.answering().detail)

    health.probe("projects", probe)


async def watch_clickhouse(health: Health, dependencies: Dependencies, stop: asyncio.Event) -> None:
    """Ping ClickHouse in the background until `stop`, so that frequent readiness probes don't."""
    health.set("clickhouse", False, "no answer yet")
    while not stop.is_set():
        try:
            await dependencies.reader.ping()
        except ReadError as error:
            health.set("clickhouse", False, str(error))
        except Exception:  # the boundary of a background task: without it readiness would never change again
            log.exception("ClickHouse ping failed", extra={"event": "clickhouse_ping_failed"})
            health.set("clickhouse", False, "the ping failed: see the log")
        else:
            health.set("clickhouse", True)
        await pause(stop, PING_SECONDS)


async def stop_watching(task: "asyncio.Task[None]", stop: asyncio.Event) -> None:
    """End `watch_clickhouse`; a running ping gets a moment to finish."""
    stop.set()
    await asyncio.wait([task], timeout=STOP_SECONDS)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
