"""Middleware that captures what a web application lets escape, and passes it on unchanged."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any

from svc.client import current
from svc.reporting import never_raises, session_active, session_background, watch_loop
from svc.request_scope import scope_of

Describe = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""From the request (WSGI environ, ASGI scope) to what to say of it in an event: `{"tags": {...}, "user": {...}}`."""

StartResponse = Callable[..., Any]
WsgiApp = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


@never_raises(None)
def report(
    error: BaseException | None, request: Mapping[str, Any] | None = None, describe: Describe | None = None
) -> None:
    """Capture what a request raised, unless it was captured already; never raises."""
    client = current()
    if client is not None:
        told = _described(request, describe)
        client.capture_uncaught(error, tags=told.get("tags"), user=told.get("user"))


def _described(request: Mapping[str, Any] | None, describe: Describe | None) -> Mapping[str, Any]:
    if describe is None or request is None:
        return {}
    try:
        told = describe(request)
        return told if isinstance(told, Mapping) else {}
    except Exception:
        return {}


@contextmanager
def _watched(request: MutableMapping[str, Any], describe: Describe | None) -> Iterator[None]:
    """A step of answering a request: in the request's scope, and what escapes is reported and raised again."""
    with scope_of(request).active():
        try:
            yield
        except Exception as error:
            report(error, request, describe)
            raise


class WsgiMiddleware:
    """Around a WSGI application: its exceptions, and those of the body it gives, are captured and raised again.

    Nothing of the request is sent but what `describe` returns. Each request has a scope of its own.
    """

    def __init__(self, app: WsgiApp, describe: Describe | None = None) -> None:
        self._app = app
        self._describe = describe

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """PEP 3333."""
        with _watched(environ, self._describe):
            body = self._app(environ, start_response)
        return body if isinstance(body, (list, tuple)) else _Body(body, environ, self._describe)


class _Body:
    """The parts of an answer that is made while it is read."""

    def __init__(self, body: Iterable[bytes], environ: dict[str, Any], describe: Describe | None) -> None:
        self._body = body
        self._environ = environ
        self._describe = describe

    def __iter__(self) -> Iterator[bytes]:
        with _watched(self._environ, self._describe):
            parts = iter(self._body)
        # The scope is left between two parts: the server's thread may do something else there.
        while (part := self._next(parts)) is not None:
            yield part

    def _next(self, parts: Iterator[bytes]) -> bytes | None:
        with _watched(self._environ, self._describe):
            return next(parts, None)

    def close(self) -> None:
        """The server has done with the answer."""
        close = getattr(self._body, "close", None)
        if close is not None:
            with _watched(self._environ, self._describe):
                close()


class AsgiMiddleware:
    """Around an ASGI application: its exceptions are captured and raised again; its lifespan is the session.

    Nothing of the request is sent but what `describe` returns. Each request, and each WebSocket, has a scope of its own.
    """

    def __init__(self, app: AsgiApp, describe: Describe | None = None) -> None:
        self._app = app
        self._describe = describe

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """ASGI 3."""
        if scope["type"] == "lifespan":
            watch_loop()
            # Not watched: an application without a lifespan says so by raising; and what it sets is for all requests.
            await self._app(scope, *_lifespan(receive, send))
            return
        with _watched(scope, self._describe):
            await self._app(scope, receive, send)


def _lifespan(receive: Receive, send: Send) -> tuple[Receive, Send]:
    async def watched_receive() -> Message:
        message = await receive()
        if message["type"] == "lifespan.shutdown":
            session_background()
        return message

    async def watched_send(message: Message) -> None:
        if message["type"] == "lifespan.startup.complete":
            session_active()
        await send(message)

    return watched_receive, watched_send
