"""Middleware that captures what a web application lets escape, and passes it on unchanged."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any

from svc.reporting import current, session_active, session_background, watch_loop

Describe = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""From the request (WSGI environ, ASGI scope) to what to say of it in an event: `{"tags": {...}, "user": {...}}`."""

StartResponse = Callable[..., Any]
WsgiApp = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


def _capture(error: Exception, request: Mapping[str, Any], describe: Describe | None) -> None:
    client = current()
    if client is None:
        return
    try:
        told = describe(request) if describe is not None else {}
        client.capture_uncaught(error, tags=told.get("tags"), user=told.get("user"))
    except Exception:
        client.capture_uncaught(error)


class WsgiMiddleware:
    """Around a WSGI application: its exceptions, and those of the body it gives, are captured and raised again.

    Nothing of the request is sent but what `describe` returns.
    """

    def __init__(self, app: WsgiApp, describe: Describe | None = None) -> None:
        self._app = app
        self._describe = describe

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """PEP 3333."""
        try:
            body = self._app(environ, start_response)
        except Exception as error:
            _capture(error, environ, self._describe)
            raise
        return body if isinstance(body, (list, tuple)) else _Body(body, environ, self._describe)


class _Body:
    """The parts of an answer that is made while it is read."""

    def __init__(self, body: Iterable[bytes], environ: dict[str, Any], describe: Describe | None) -> None:
        self._body = body
        self._environ = environ
        self._describe = describe

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._body
        except Exception as error:
            _capture(error, self._environ, self._describe)
            raise

    def close(self) -> None:
        """The server has done with the answer."""
        close = getattr(self._body, "close", None)
        if close is not None:
            close()


class AsgiMiddleware:
    """Around an ASGI application: its exceptions are captured and raised again; its lifespan is the session."""

    def __init__(self, app: AsgiApp, describe: Describe | None = None) -> None:
        self._app = app
        self._describe = describe

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """ASGI 3."""
        if scope["type"] == "lifespan":
            watch_loop()
            receive, send = _lifespan(receive, send)
        try:
            await self._app(scope, receive, send)
        except Exception as error:
            # An application without a lifespan says so by raising.
            if scope["type"] != "lifespan":
                _capture(error, scope, self._describe)
            raise


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
