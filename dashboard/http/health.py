"""Alive, ready, metrics (contract, section 1): open to anyone, they show no data."""

import asyncio
import logging
from contextlib import suppress
from typing import Final

from aiohttp import web
from msgspec import Struct

from broker.waiting import pause
from dashboard.dependencies import Dependencies, state_of
from dashboard.http.wire import json_answer
from schemas.health import Health, Part
from storage.errors import ReadError

log = logging.getLogger(__name__)
LOOK_SECONDS: Final = 2.0
LAST_SECONDS: Final = 1.0


class Alive(Struct, frozen=True):
    """Body of `healthz`."""

    alive: bool = True


async def healthz(_request: web.Request) -> web.Response:
    """The process answers."""
    return json_answer(Alive())


async def readyz(request: web.Request) -> web.Response:
    """503 until every part works."""
    readiness = state_of(request).health.readiness()
    return json_answer(readiness, 200 if readiness.ready else 503)


async def metrics(request: web.Request) -> web.Response:
    """Prometheus' text."""
    return state_of(request).metrics.text()


def watch_projects(health: Health, parts: Dependencies) -> None:
    """The part `projects` works once the topic has been read.

    Its detail tells when no broker answers: pages can be read then, only changes are refused, so it must not take the dashboard down.
    """
    unread = Part(ok=False, detail="the topic of projects isn't read yet")

    def projects() -> Part:
        return Part(ok=True, detail=parts.projects.answering().detail) if parts.projects.loaded else unread

    health.probe("projects", projects)


async def watch_clickhouse(health: Health, parts: Dependencies, stop: asyncio.Event) -> None:
    """Look after ClickHouse until `stop`: readiness is asked often, so it isn't asked there."""
    health.set("clickhouse", False, "it hasn't answered yet")
    while not stop.is_set():
        try:
            await parts.reader.ping()
        except ReadError as error:
            health.set("clickhouse", False, str(error))
        except Exception:  # the boundary of a background task: without it readiness would stand still
            log.exception("ClickHouse could not be asked")
            health.set("clickhouse", False, "it could not be asked: see the log")
        else:
            health.set("clickhouse", True)
        await pause(stop, LOOK_SECONDS)


async def stop_watching(task: "asyncio.Task[None]", stop: asyncio.Event) -> None:
    """End `watch_clickhouse`; a question that is under way gets a moment to come back."""
    stop.set()
    await asyncio.wait([task], timeout=LAST_SECONDS)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
