"""Hooks for unhandled errors, logs, network requests and signals.

Each hook calls the previous one. `remove` restores the previous hook unless another one was installed since: then ours
stays in the chain.
"""

import asyncio
import logging
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from svc.client import Client
from svc.logs import LogHandler
from svc.network import AiohttpNetwork, Network
from svc.options import EVENTS, Capture

Current = Callable[[], Client | None]


class Hooks:
    """The hooks of one `init`; `current` returns the client that receives the errors."""

    def __init__(self, current: Current) -> None:
        self._current = current
        self._undo: list[Callable[[], None]] = []

    def install(self, capture: Capture, *, has_transport: bool) -> None:
        """Install the hooks that the options enable; those for errors only if there is a transport."""
        if capture.errors and has_transport:
            self._replace(sys, "excepthook", self._uncaught)
            self._replace(threading, "excepthook", self._args_hook)
            self._replace(sys, "unraisablehook", self._args_hook)
            self._replace(asyncio.BaseEventLoop, "call_exception_handler", self._loop_error)
            self.watch_loop()
        if capture.logs:
            messages = capture.logs == EVENTS
            self._listen_to_logs(LogHandler(messages=messages, current=self._current))
        elif capture.logs is None and has_transport:
            self._listen_to_logs(LogHandler(logging.ERROR, sys.maxsize, current=self._current))
        if capture.network:
            self._undo += [Network(self._current).install(), AiohttpNetwork(self._current).install()]
        if capture.sessions:
            self._session("active")
            self._listen_to_continue()

    def remove(self) -> None:
        """Remove every hook that is still the current one."""
        while self._undo:
            self._undo.pop()()

    def _replace(self, owner: Any, name: str, hook: Callable[..., Callable[..., Any]]) -> None:
        previous = getattr(owner, name)
        ours = hook(previous)
        setattr(owner, name, ours)

        def undo() -> None:
            if getattr(owner, name) is ours:
                setattr(owner, name, previous)

        self._undo.append(undo)

    def _capture(self, error: BaseException | None) -> None:
        client = self._current()
        if client is not None:
            try:
                client.capture_uncaught(error)
            except Exception:
                client.counts["dropped.fault"] += 1

    def _uncaught(self, previous: Callable[..., Any]) -> Callable[..., Any]:
        def excepthook(
            kind: type[BaseException], error: BaseException, traceback: TracebackType | None
        ) -> None:
            self._capture(error)
            previous(kind, error, traceback)

        return excepthook

    def _args_hook(self, previous: Callable[..., Any]) -> Callable[..., Any]:
        def hook(args: "threading.ExceptHookArgs | sys.UnraisableHookArgs") -> None:
            self._capture(args.exc_value)
            previous(args)

        return hook

    def _loop_error(self, previous: Callable[..., Any]) -> Callable[..., Any]:
        def call_exception_handler(loop: asyncio.BaseEventLoop, context: dict[str, Any]) -> None:
            self._capture(context.get("exception"))
            previous(loop, context)

        return call_exception_handler

    def watch_loop(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Capture the errors of a third-party loop; asyncio's own loops are hooked through their class."""
        if loop is None:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                return
        if isinstance(loop, asyncio.BaseEventLoop):
            return
        previous = loop.get_exception_handler()

        def handler(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            self._capture(context.get("exception"))
            if previous is None:
                loop.default_exception_handler(context)
            else:
                previous(loop, context)

        loop.set_exception_handler(handler)

    def _listen_to_logs(self, handler: LogHandler) -> None:
        """Hear every record without a handler on the root logger, which would silence the application's own logs.

        With a handler there `logging.lastResort` prints nothing, and a later `basicConfig` does nothing.
        """

        def hook(previous: Callable[..., Any]) -> Callable[..., Any]:
            def call_handlers(logger: logging.Logger, record: logging.LogRecord) -> None:
                previous(logger, record)
                if record.levelno >= handler.level:
                    handler.handle(record)

            return call_handlers

        self._replace(logging.Logger, "callHandlers", hook)

    def _session(self, action: str) -> None:
        client = self._current()
        if client is not None:
            client.add_breadcrumb({"type": "user", "data": {"action": action, "target": "app"}})

    def _listen_to_continue(self) -> None:
        """Report a stopped process as active again on SIGCONT, unless the signal already has a handler."""
        number = getattr(signal, "SIGCONT", None)
        if number is None or threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(number) is not signal.SIG_DFL:
            return

        def on_continue(_number: int, _frame: FrameType | None) -> None:
            self._session("active")

        signal.signal(number, on_continue)

        def undo() -> None:
            if (
                threading.current_thread() is threading.main_thread()
                and signal.getsignal(number) is on_continue
            ):
                signal.signal(number, signal.SIG_DFL)

        self._undo.append(undo)
