"""aiohttp's low-level server with our timeouts, our limits of connections and our response to malformed HTTP."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from aiohttp import StreamReader, web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import RawRequestMessage
from aiohttp.web_protocol import RequestHandler

from edge.edge_metrics import EdgeMetrics
from edge.http import responses
from edge.limits.connections import ConnectionLimits, sender_of
from edge.request_errors import RequestError
from schemas.errors import Detail, WireError

log = logging.getLogger(__name__)

_IDLE_SECONDS: Final = 75.0
"""Idle timeout of a connection: longer than that of the proxies in front."""
_LINGER_SECONDS: Final = 2.0
"""How long the remaining body of a refused request is read and discarded, so that the client can read the response."""
_READ_BUFFER: Final = 64 * 1024
_MAX_HEAD_BYTES: Final = 32 * 1024
"""Longest head in bytes; aiohttp alone would keep a megabyte of each."""


class EdgeConnection(RequestHandler):
    """One connection.

    A malformed request gets a declared error and is logged without a traceback. The first head, and each
    later one, must end within the server's time and size. `sender` is counted in the server's limits.
    """

    __slots__ = ("_head_bytes", "_last_body", "_refused", "_sender", "_server")

    def __init__(self, server: "EdgeServer", sender: str, **options: Any) -> None:
        super().__init__(server, **options)
        self._server = server
        self._sender = sender
        self._last_body: StreamReader | None = None
        self._head_bytes = 0
        self._refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Let the time of the first head run."""
        super().connection_made(transport)
        self._server.begin_head(self)

    def data_received(self, data: bytes) -> None:
        """Remember the body that is being received, and limit the head. Discard all data after malformed HTTP.

        Reading stops after a head's size of it: the rest of a flood would only cost CPU.
        """
        if self._refused:
            self._discard(data)
            return
        requests = self._request_count
        in_body = self._last_body is not None and not self._last_body.is_eof()
        super().data_received(data)
        if self._request_count > requests:
            self._head_bytes = 0
            self._server.end_head(self)
            message, self._last_body = self._messages[-1]
            if not isinstance(message, RawRequestMessage):
                self._refused = True
                # Its frames hold this data and the error itself: a cycle that would wait for the garbage collector.
                message.exc.__traceback__ = None
                self._discard(data)
        elif data and not in_body:
            self._head_bytes += len(data)
            self._server.begin_head(self)
            if self._head_bytes > _MAX_HEAD_BYTES:
                self.end("long head")

    def _discard(self, data: bytes) -> None:
        self._head_bytes += len(data)
        if self._head_bytes > _MAX_HEAD_BYTES and self.transport is not None:
            self.transport.pause_reading()

    def end(self, reason: str) -> None:
        """End the connection: immediately if it is idle, else after the current request."""
        self._refused = True
        self._server.metrics.connections_ended.labels(reason).inc()
        if self._request_in_progress:
            self.close()
        else:
            self.force_close()

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
        """Break the reference cycle with the body.

        With thousands of them, a garbage collection blocks the loop for up to 100 ms.
        """
        super().connection_lost(exc)
        self._last_body = None
        self._server.end_head(self)
        self._server.limits.release(self._sender)

    def handle_error(
        self,
        request: web.BaseRequest,  # noqa: ARG002
        status: int = 500,  # noqa: ARG002
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Respond to an error of the parser; `EdgeApp` has handled every other error."""
        if isinstance(exc, HttpProcessingError):
            log.debug("not HTTP: %s", exc.message, extra={"event": "request_malformed"})
            details = [Detail("request", "malformed HTTP request")]
            response = responses.error(RequestError(WireError.VALIDATION_FAILED, "http", details))
        else:
            log.error("server error: %s", message, exc_info=exc, extra={"event": "connection_failed"})
            response = responses.error(RequestError(WireError.INTERNAL, "fault"))
        self._server.metrics.malformed(response.status)
        response.force_close()
        return response


class _Arrival(asyncio.Protocol):
    """A connection before it is admitted: those beyond the limits cost no parser."""

    __slots__ = ("_server",)

    def __init__(self, server: "EdgeServer") -> None:
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        peer = transport.get_extra_info("peername")
        sender = sender_of(peer[0]) if peer else ""
        accepted = cast(asyncio.Transport, transport)
        if not self._server.admit(sender):
            accepted.abort()
            return
        connection = self._server.connection(sender)
        accepted.set_protocol(connection)
        connection.connection_made(accepted)


class EdgeServer(web.Server):
    """Creates the connections, as many as the limits admit, and ends those whose head takes longer than `head_seconds`.

    aiohttp must not inflate bodies: it would do so without a limit.
    """

    _options: Final[dict[str, Any]] = {
        "auto_decompress": False,
        "access_log": None,
        "keepalive_timeout": _IDLE_SECONDS,
        "lingering_time": _LINGER_SECONDS,
        "read_bufsize": _READ_BUFFER,
        # Our timeouts end connections whose peer has gone.
        "tcp_keepalive": False,
    }

    def __init__(
        self,
        handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        metrics: EdgeMetrics,
        limits: ConnectionLimits,
        head_seconds: float,
    ) -> None:
        super().__init__(handler)
        self.metrics = metrics
        self.limits = limits
        self._head_seconds = head_seconds
        # Every head has the same timeout, so insertion order is deadline order.
        self._heads: dict[EdgeConnection, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __call__(self) -> asyncio.Protocol:  # type: ignore[override]  # aiohttp returns the handler itself
        return _Arrival(self)

    def connection(self, sender: str) -> EdgeConnection:
        """The protocol of an admitted connection."""
        return EdgeConnection(self, sender, loop=self._loop, **self._options)

    def admit(self, sender: str) -> bool:
        """Whether the limits admit one more connection, which is counted."""
        refused = self.limits.admit(sender)
        if refused:
            self.metrics.connections_ended.labels(refused).inc()
        return not refused

    def begin_head(self, connection: EdgeConnection) -> None:
        """From now on, if it doesn't already, the time of a head runs."""
        if connection not in self._heads:
            self._heads[connection] = self._loop.time() + self._head_seconds
            if self._timer is None:
                self._timer = self._loop.call_later(self._head_seconds, self._end_slow)

    def end_head(self, connection: EdgeConnection) -> None:
        """The head came, or the connection ended."""
        self._heads.pop(connection, None)

    def _end_slow(self) -> None:
        now = self._loop.time()
        for connection in [each for each, end in self._heads.items() if end <= now]:
            self.end_head(connection)
            connection.end("slow head")
        first = next(iter(self._heads.values()), None)
        self._timer = self._loop.call_at(first, self._end_slow) if first else None
