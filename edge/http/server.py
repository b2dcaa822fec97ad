"""aiohttp's low-level server with our timeouts and our response to malformed HTTP."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import StreamReader, web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import RawRequestMessage
from aiohttp.web_protocol import RequestHandler

from edge.http import responses
from edge.http.errors import RequestError
from schemas.errors import Detail, WireError

log = logging.getLogger(__name__)

_IDLE_SECONDS: Final = 75.0
"""Idle timeout of a connection: longer than that of the proxies in front."""
_LINGER_SECONDS: Final = 2.0
"""How long the remaining body of a refused request is read and discarded, so that the client can read the response."""
_READ_BUFFER: Final = 64 * 1024


class EdgeConnection(RequestHandler):
    """One connection. A malformed request gets a declared error and is logged without a traceback."""

    __slots__ = ("_last_body",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._last_body: StreamReader | None = None

    def data_received(self, data: bytes) -> None:
        """Remember the body that is being received."""
        super().data_received(data)
        if self._messages:
            self._last_body = self._messages[-1][1]

    def eof_received(self) -> bool:  # type: ignore[override]  # asyncio: whether to keep the other half open
        """Respond to complete requests before closing: a client that closed its sending half may still read."""
        idle = not self._messages and self._waiter is not None and not self._waiter.done()
        if idle or self._last_body is None or not self._last_body.is_eof():
            return False
        if not self._messages:
            self.close()
        elif isinstance(self._messages[-1][0], RawRequestMessage):
            self._messages[-1] = (self._messages[-1][0]._replace(should_close=True), self._last_body)
        return True

    def connection_lost(self, exc: BaseException | None) -> None:
        """Break the reference cycle with the body: with thousands of them a garbage collection blocks the loop for up to 100 ms."""
        super().connection_lost(exc)
        self._last_body = None

    def handle_error(
        self,
        request: web.BaseRequest,  # noqa: ARG002
        status: int = 500,  # noqa: ARG002
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Respond to what the parser refused; `EdgeApp` has handled every other error."""
        if isinstance(exc, HttpProcessingError):
            log.debug("not HTTP: %s", exc.message)
            details = [Detail("request", "malformed HTTP request")]
            response = responses.error(RequestError(WireError.VALIDATION_FAILED, "http", details))
        else:
            log.error("server error: %s", message, exc_info=exc)
            response = responses.error(RequestError(WireError.INTERNAL, "fault"))
        if isinstance(self._manager, EdgeServer):
            self._manager.refused(response.status)
        response.force_close()
        return response


class EdgeServer(web.Server):
    """Creates the connections. aiohttp must not inflate bodies: it would do so without a limit.

    `refused` is called with the status of each response to malformed HTTP.
    """

    _options: Final[dict[str, Any]] = {
        "auto_decompress": False,
        "access_log": None,
        "keepalive_timeout": _IDLE_SECONDS,
        "lingering_time": _LINGER_SECONDS,
        "read_bufsize": _READ_BUFFER,
    }

    def __init__(
        self,
        handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        refused: Callable[[int], None],
    ) -> None:
        super().__init__(handler)
        self.refused = refused

    def __call__(self) -> RequestHandler:
        """The protocol of a new connection."""
        return EdgeConnection(self, loop=self._loop, **self._options)
