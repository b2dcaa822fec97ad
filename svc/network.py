"""Breadcrumbs for HTTP requests: through `http.client` (urllib, requests, urllib3, ...) and aiohttp's client."""

import contextlib
import http.client
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from svc.client import Client

_REQUEST = "_svc_request"
_DEFAULT_PORTS = {"http": 80, "https": 443}


def leave_breadcrumb(
    client: Client | None, method: str, url: str, started: float, status: int | None
) -> None:
    """Add a `net` breadcrumb; `started` is a `time.perf_counter` value, `status` None if no response came."""
    if client is None:
        return
    data: dict[str, Any] = {
        "method": method,
        "url": url,
        "durationMs": (time.perf_counter() - started) * 1000,
    }
    if status is not None:
        data["status"] = status
    client.add_breadcrumb({"type": "net", "data": data})


class Network:
    """Traces every `HTTPConnection` of the process except the library's own."""

    def __init__(self, current: Callable[[], Client | None]) -> None:
        self._current = current

    def install(self) -> Callable[[], None]:
        """Wrap the three methods that each request passes; returns a function that restores them."""
        kind = http.client.HTTPConnection
        wrapped = [
            _wrap(kind, "putrequest", self._started),
            _wrap(kind, "endheaders", self._sent),
            _wrap(kind, "getresponse", self._answered),
        ]

        def undo() -> None:
            for restore in reversed(wrapped):
                restore()

        return undo

    def _started(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def putrequest(connection: Any, method: str, url: str, *args: Any, **kwargs: Any) -> Any:
            with contextlib.suppress(Exception):
                if not getattr(connection, "svc_silent", False):
                    setattr(connection, _REQUEST, (method, whole_url(connection, url), time.perf_counter()))
            return original(connection, method, url, *args, **kwargs)

        return putrequest

    def _sent(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def endheaders(connection: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return original(connection, *args, **kwargs)
            except Exception:
                self._ended(connection, None)
                raise

        return endheaders

    def _answered(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def getresponse(connection: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                response = original(connection, *args, **kwargs)
            except Exception:
                self._ended(connection, None)
                raise
            self._ended(connection, response)
            return response

        return getresponse

    def _ended(self, connection: Any, response: Any) -> None:
        with contextlib.suppress(Exception):
            request = getattr(connection, _REQUEST, None)
            if request is not None:
                setattr(connection, _REQUEST, None)
                method, url, started = request
                status = None if response is None else response.status
                leave_breadcrumb(self._current(), method, url, started, status)


def _wrap(kind: Any, name: str, make: Callable[..., Callable[..., Any]]) -> Callable[[], None]:
    original = kind.__dict__[name]
    ours = make(original)
    setattr(kind, name, ours)

    def undo() -> None:
        if kind.__dict__.get(name) is ours:
            setattr(kind, name, original)

    return undo


def whole_url(connection: Any, url: str) -> str:
    """The URL with its host; for a tunnel through a proxy that is the target host."""
    if not isinstance(url, str) or "://" in url.partition("?")[0]:
        return str(url)
    scheme = "https" if getattr(connection, "default_port", 80) == _DEFAULT_PORTS["https"] else "http"
    host, port = connection.host, connection.port
    if getattr(connection, "_tunnel_host", None):
        host, port = connection._tunnel_host, connection._tunnel_port
    host = str(host).rpartition("@")[2]
    if ":" in host:
        host = f"[{host}]"
    return f"{scheme}://{host}" + ("" if port in {None, _DEFAULT_PORTS[scheme]} else f":{port}") + url


class AiohttpNetwork:
    """Traces every new `aiohttp.ClientSession`. The library never imports aiohttp itself."""

    def __init__(self, current: Callable[[], Client | None]) -> None:
        self._current = current

    def install(self) -> Callable[[], None]:
        """Wrap the session's constructor if aiohttp is imported; returns a function that restores it."""
        aiohttp: Any = sys.modules.get("aiohttp")
        if aiohttp is None or not hasattr(aiohttp, "ClientSession"):
            return lambda: None
        kind = aiohttp.ClientSession
        original = kind.__init__

        def traced(session: Any, *args: Any, **kwargs: Any) -> None:
            kwargs["trace_configs"] = [*(kwargs.get("trace_configs") or ()), self.trace(aiohttp)]
            original(session, *args, **kwargs)

        kind.__init__ = traced

        def undo() -> None:
            if kind.__init__ is traced:
                kind.__init__ = original

        return undo

    def trace(self, aiohttp: Any) -> Any:
        """A `TraceConfig` that adds a breadcrumb for each request."""
        config = aiohttp.TraceConfig()

        async def start(_session: Any, context: SimpleNamespace, _params: Any) -> None:
            context.svc_started = time.perf_counter()

        async def end(_session: Any, context: SimpleNamespace, params: Any) -> None:
            self._leave(context, params, params.response.status)

        async def failed(_session: Any, context: SimpleNamespace, params: Any) -> None:
            self._leave(context, params, None)

        config.on_request_start.append(start)
        config.on_request_end.append(end)
        config.on_request_exception.append(failed)
        return config

    def _leave(self, context: SimpleNamespace, params: Any, status: int | None) -> None:
        with contextlib.suppress(Exception):
            started = getattr(context, "svc_started", time.perf_counter())
            leave_breadcrumb(self._current(), params.method, str(params.url), started, status)
