"""aiohttp's server, but for how it answers what isn't HTTP: in the API's one error shape, without a traceback in the log."""

import logging
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestHandler

from dashboard.http.errors import HttpError, invalid
from dashboard.http.headers import SECURITY
from dashboard.http.wire import error_answer
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
        """The answer to what the parser refused; whatever else fails was answered before it got here."""
        if isinstance(exc, HttpProcessingError):
            log.debug("not HTTP: %s", exc.message)
            refused = invalid("request", "malformed HTTP request")
        else:
            log.error("a fault of the server: %s", message, exc_info=exc)
            refused = HttpError(WireError.INTERNAL)
        response = error_answer(refused)
        response.headers.update(SECURITY | {"Cache-Control": "no-store"})
        response.force_close()
        return response


class Server(web.Server):
    """Makes our connections."""

    def __call__(self) -> RequestHandler:
        """A protocol for a new connection."""
        return DashboardConnection(self, loop=self._loop, **self._kwargs)


class Runner(web.AppRunner):
    """Serves an application over our connections."""

    __slots__ = ()

    async def _make_server(self) -> web.Server:
        made: Any = await super()._make_server()
        return Server(
            made.request_handler,
            request_factory=made.request_factory,
            **(made._kwargs | {"loop": made._loop}),
        )
