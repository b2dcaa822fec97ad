"""Breadcrumbs of aiohttp's client, through the tracing that it offers, where the program uses aiohttp at all."""

import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from svc.client import Client
from svc.network import leave_breadcrumb


class AiohttpNetwork:
    """Adds a trace to every `aiohttp.ClientSession` made from now on. aiohttp is never imported by us."""

    def __init__(self, current: Callable[[], Client | None]) -> None:
        self._current = current

    def install(self) -> Callable[[], None]:
        """Wrap the making of sessions; returns what puts it back. Nothing happens where aiohttp isn't imported yet."""
        aiohttp: Any = sys.modules.get("aiohttp")
        if aiohttp is None or not hasattr(aiohttp, "ClientSession"):
            return lambda: None
        kind = aiohttp.ClientSession
        original = kind.__init__

        def made(session: Any, *args: Any, **kwargs: Any) -> None:
            kwargs["trace_configs"] = [*(kwargs.get("trace_configs") or ()), self.trace(aiohttp)]
            original(session, *args, **kwargs)

        kind.__init__ = made

        def undo() -> None:
            if kind.__init__ is made:
                kind.__init__ = original

        return undo

    def trace(self, aiohttp: Any) -> Any:
        """A `TraceConfig` that leaves a breadcrumb of each round-trip."""
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
        try:
            started = getattr(context, "svc_started", time.perf_counter())
            leave_breadcrumb(self._current(), params.method, str(params.url), started, status)
        except Exception:
            pass
