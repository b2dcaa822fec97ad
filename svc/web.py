"""WSGI and ASGI middleware that captures an application's unhandled errors and re-raises them."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from svc.client import current
from svc.reporting import never_raises, session_active, session_background, watch_loop
from svc.request_scope import scope_of
from svc.request_tags import request_tags

Describe = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Maps a request (WSGI environ, ASGI scope) to fields of its events: `{"tags": {...}, "user": {...}}`."""

StartResponse = Callable[..., Any]
WsgiApp = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


@never_raises(None)
def report(
    error: BaseException | None,
    request: Mapping[str, Any] | None = None,
    describe: Describe | None = None,
    *,
    handled: bool = False,
) -> None:
    """Capture a request's error unless it was captured before; never raises."""
    client = current()
    if client is not None:
        description = _described(request, describe)
        tags, user = description.get("tags"), description.get("user")
        client.capture_uncaught(error, tags=tags, user=user, handled=handled)


def _described(request: Mapping[str, Any] | None, describe: Describe | None) -> Mapping[str, Any]:
    if describe is None or request is None:
        return {}
    try:
        description = describe(request)
        return description if isinstance(description, Mapping) else {}
    except Exception:
        return {}


@contextmanager
def _watched(request: MutableMapping[str, Any], describe: Describe | None) -> Iterator[None]:
    """Activate the request's scope; report and re-raise errors."""
    with scope_of(request).active(partial(request_tags, request)):
        try:
            yield
        except Exception as error:
            report(error, request, describe)
            raise


class WsgiMiddleware:
    """Wraps a WSGI application: captures and re-raises its errors, also those of an iterated body.

    Of the request its method, route, URL and the result of `describe` are sent. Each request has its own scope.
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
    """A response body that is produced while it is iterated."""

    def __init__(self, body: Iterable[bytes], environ: dict[str, Any], describe: Describe | None) -> None:
        self._body = body
        self._environ = environ
        self._describe = describe

    def __iter__(self) -> Iterator[bytes]:
        with _watched(self._environ, self._describe):
            parts = iter(self._body)
        # The scope is inactive between two parts: the server's thread may do other work.
        while (part := self._next(parts)) is not None:
            yield part

    def _next(self, parts: Iterator[bytes]) -> bytes | None:
        with _watched(self._environ, self._describe):
            return next(parts, None)

    def close(self) -> None:
        """Called by the server at the end of the response."""
        close = getattr(self._body, "close", None)
        if close is not None:
            with _watched(self._environ, self._describe):
                close()


class AsgiMiddleware:
    """Wraps an ASGI application: captures and re-raises its errors; its lifespan is the session.

    It sends the method, route and URL of the request, and the result of `describe`. Each request and
    WebSocket has its own scope.
    """

    def __init__(self, app: AsgiApp, describe: Describe | None = None) -> None:
        self._app = app
        self._describe = describe

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """ASGI 3."""
        if scope["type"] == "lifespan":
            watch_loop()
            # Not watched: an application without a lifespan raises, and its scope changes are for all requests.
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
