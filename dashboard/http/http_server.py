"""aiohttp's server, except that malformed HTTP gets the API's error shape and no traceback in the log."""

import logging
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestHandler

from dashboard.http.headers import SECURITY
from dashboard.http.http_errors import HttpError, invalid
from dashboard.http.responses import error_response
from schemas.errors import WireError

log = logging.getLogger(__name__)


class DashboardConnection(RequestHandler):
    """One connection."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,  # noqa: ARG002
        status: int = 500,  # noqa: ARG002
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The response to a parser error; the error boundary has answered everything else."""
        if isinstance(exc, HttpProcessingError):
            log.debug("malformed HTTP: %s", exc.message, extra={"event": "malformed_http_received"})
            error = invalid("request", "malformed HTTP request")
        else:
            log.error("server error: %s", message, exc_info=exc, extra={"event": "http_server_failed"})
            error = HttpError(WireError.INTERNAL)
        response = error_response(error)
        response.headers.update(SECURITY | {"Cache-Control": "no-store"})
        response.force_close()
        return response


class Server(web.Server):
    """Creates `DashboardConnection`s."""

    def __call__(self) -> RequestHandler:
        return DashboardConnection(self, loop=self._loop, **self._kwargs)


class Runner(web.AppRunner):
    """Serves an application over `DashboardConnection`s."""

    __slots__ = ()

    async def _make_server(self) -> web.Server:
        server: Any = await super()._make_server()
        return Server(
            server.request_handler,
            request_factory=server.request_factory,
            **(server._kwargs | {"loop": server._loop}),
        )
