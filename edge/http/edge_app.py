"""Routes the edge's requests by path and method; every request ends in a declared response."""

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from aiohttp import web

from edge.edge_metrics import EdgeMetrics
from edge.http import responses
from edge.http.body import SlowBody
from edge.http.edge_server import EdgeServer
from edge.http.endpoints import Ingest
from edge.http.ingest_openapi import document
from edge.limits.connections import ConnectionLimits
from edge.request_errors import RequestError
from schemas.errors import WireError
from schemas.health import Health

log = logging.getLogger(__name__)

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

SINGLE_PATH: Final = "/v1/events"
BATCH_PATH: Final = "/v1/events:batch"
OPENAPI_PATH: Final = "/v1/openapi.json"
_UNKNOWN: Final = "unknown"


class EdgeApp:
    """Dispatches requests, measures them and turns every error into a response.

    It is the handler of aiohttp's low-level server: without aiohttp's router a request costs a tenth less.
    """

    def __init__(self, ingest: Ingest, health: Health, metrics: EdgeMetrics) -> None:
        self._health = health
        self._metrics = metrics
        self._openapi = document()
        self._routes: Final[dict[str, dict[str, Handler]]] = {
            SINGLE_PATH: {"POST": ingest.single, "OPTIONS": self._preflight},
            BATCH_PATH: {"POST": ingest.batch, "OPTIONS": self._preflight},
            OPENAPI_PATH: {"GET": self._serve_openapi},
            "/healthz": {"GET": self._healthz},
            "/readyz": {"GET": self._readyz},
            "/metrics": {"GET": self._serve_metrics},
        }

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        started = time.perf_counter()
        path, routes = self._resolve(request)
        self._metrics.in_flight.inc()
        try:
            response = await self._respond(request, routes)
        finally:
            self._metrics.in_flight.dec()
        self._metrics.answered(path, response.status, time.perf_counter() - started)
        return response

    async def _respond(
        self, request: web.BaseRequest, routes: dict[str, Handler] | None
    ) -> web.StreamResponse:
        if routes is None:
            return responses.error(RequestError(WireError.NOT_FOUND, "path"))
        handler = routes.get("GET" if request.method == "HEAD" else request.method)
        if handler is None:
            return responses.wrong_method(_allowed(routes))
        try:
            return await handler(request)
        except RequestError as error:
            return responses.error(error)
        except SlowBody:
            # The client is gone or too slow: a closed connection tells it to retry.
            if request.transport is not None:
                request.transport.abort()
            return responses.error(RequestError(WireError.UNAVAILABLE, "slow body"))
        except Exception:
            log.exception("internal error at %s", request.path, extra={"event": "request_failed"})
            return responses.error(RequestError(WireError.INTERNAL, "fault"))

    def _resolve(self, request: web.BaseRequest) -> tuple[str, dict[str, Handler] | None]:
        # The raw target nearly always matches a route: decode it only if it doesn't.
        path = request._message.path
        routes = self._routes.get(path)
        if routes is None:
            path = request.path.rstrip("/")
            routes = self._routes.get(path)
        return (path if routes else _UNKNOWN), routes

    async def _preflight(self, request: web.BaseRequest) -> web.Response:
        return responses.preflight(request.headers.get("Access-Control-Request-Headers", ""))

    async def _serve_openapi(self, request: web.BaseRequest) -> web.Response:  # noqa: ARG002
        return responses.document(self._openapi)

    async def _healthz(self, request: web.BaseRequest) -> web.Response:  # noqa: ARG002
        return responses.document(b'{"alive":true}')

    async def _readyz(self, request: web.BaseRequest) -> web.Response:  # noqa: ARG002
        readiness = self._health.readiness()
        return responses.document(msgspec.json.encode(readiness), status=200 if readiness.ready else 503)

    async def _serve_metrics(self, request: web.BaseRequest) -> web.Response:  # noqa: ARG002
        return responses.document(self._metrics.page(), "text/plain; version=0.0.4; charset=utf-8")


def build_app(
    ingest: Ingest, health: Health, metrics: EdgeMetrics, limits: ConnectionLimits, head_seconds: float
) -> EdgeServer:
    """The server for aiohttp's `web.ServerRunner`."""
    return EdgeServer(EdgeApp(ingest, health, metrics).handle, metrics, limits, head_seconds)


def _allowed(routes: dict[str, Handler]) -> str:
    return ", ".join(sorted(routes | ({"HEAD": None} if "GET" in routes else {})))
