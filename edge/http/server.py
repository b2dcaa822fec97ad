"""aiohttp's low-level server with what we need changed: how it answers what isn't HTTP, and how long it waits."""

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
"""A connection without a whole request head for this long is closed: longer than the proxies in front keep theirs."""
_LINGER_SECONDS: Final = 2.0
"""How long a refused body that is still coming is taken off the line, so that its sender can read the answer."""
_READ_BUFFER: Final = 64 * 1024


class EdgeConnection(RequestHandler):
    """One connection: a malformed head is answered in our words, and isn't worth a traceback."""

    __slots__ = ("_last_body",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._last_body: StreamReader | None = None

    def data_received(self, data: bytes) -> None:
        """Remember the body that is coming."""
        super().data_received(data)
        if self._messages:
            self._last_body = self._messages[-1][1]

    def eof_received(self) -> bool:  # type: ignore[override]  # asyncio asks whether to keep the other half open
        """A client that sends no more may still read: what it has asked for whole is answered before the connection ends."""
        idle = not self._messages and self._waiter is not None and not self._waiter.done()
        if idle or self._last_body is None or not self._last_body.is_eof():
            return False
        if not self._messages:
            self.close()
        elif isinstance(self._messages[-1][0], RawRequestMessage):
            self._messages[-1] = (self._messages[-1][0]._replace(should_close=True), self._last_body)
        return True

    def connection_lost(self, exc: BaseException | None) -> None:
        """Break the reference cycle with the body: thousands of them make a garbage collection hold the loop for up to 100 ms."""
        super().connection_lost(exc)
        self._last_body = None

    def handle_error(
        self,
        request: web.BaseRequest,  # noqa: ARG002
        status: int = 500,  # noqa: ARG002
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to what the parser refused; anything else was answered before it got here."""
        if isinstance(exc, HttpProcessingError):
            log.debug("not HTTP: %s", exc.message)
            details = [Detail("request", "malformed HTTP request")]
            response = responses.fault(RequestError(WireError.VALIDATION_FAILED, "http", details))
        else:
            log.error("a fault of the server: %s", message, exc_info=exc)
            response = responses.fault(RequestError(WireError.INTERNAL, "fault"))
        if isinstance(self._manager, EdgeServer):
            self._manager.refused(response.status)
        response.force_close()
        return response


class EdgeServer(web.Server):
    """Makes our connections. The body isn't inflated by aiohttp, which knows no bound for it.

    `refused` gets the status of each answer to what was no request.
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
        """A protocol for a new connection."""
        return EdgeConnection(self, loop=self._loop, **self._options)
