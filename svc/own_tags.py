"""The tags that the library adds to an event: `handled`, those of its request or task, `thread`, `host`."""

import contextlib
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Final

from svc.limits import TAG_KEYS, TAG_VALUE_CHARS
from svc.options import Options
from svc.plain import text_of

RequestTags = Callable[[], Mapping[str, str]]
"""Reads the tags of a request or task at the time of a capture: a route is known only once a framework has found it."""


class OwnTags:
    """Adds the tags that the options enable."""

    def __init__(self, options: Options) -> None:
        self._capture: Final = options.capture
        self._host = options.host if isinstance(options.host, str) else ""
        if options.host is True:
            with contextlib.suppress(OSError):
                self._host = socket.gethostname()

    def added_to(self, tags: Mapping[str, str], handled: bool, request: RequestTags | None) -> dict[str, str]:
        """The application's tags and ours, at most 50. The application's have precedence and are never dropped."""
        added = dict(tags)
        for name, value in self._own(handled, request).items():
            if len(added) >= TAG_KEYS:
                break
            if value:
                added.setdefault(name, text_of(value, TAG_VALUE_CHARS))
        return added

    def _own(self, handled: bool, request: RequestTags | None) -> dict[str, str]:
        own: dict[str, str] = {}
        if self._capture.handled:
            own["handled"] = "yes" if handled else "no"
        # The request and the thread are objects of the program, which may fail.
        if self._capture.requests and request is not None:
            with contextlib.suppress(Exception):
                own.update(request())
        if self._capture.thread:
            with contextlib.suppress(Exception):
                own["thread"] = _thread()
        own["host"] = self._host
        return own


def _thread() -> str:
    """The thread's name; empty in the main thread."""
    thread = threading.current_thread()
    return "" if thread is threading.main_thread() else thread.name
