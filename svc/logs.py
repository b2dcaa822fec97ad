"""The standard `logging` module as a source of breadcrumbs and errors."""

import logging
import threading
import weakref
from collections.abc import Callable

from svc.client import Client, current
from svc.notices import LOGGER

_OF_SERVERS = frozenset(
    {"aiohttp.server", "django.request", "gunicorn.error", "hypercorn.error", "uvicorn.error", "waitress"}
)
"""Loggers through which a server reports an exception that the application has not handled."""
_LAST = threading.local()


def _is_repeated(record: logging.LogRecord) -> bool:
    """Whether this thread's last record was this one: a handler of the application and the hook both get it.

    A mark on the record itself would be in the output of formatters that print every attribute.
    """
    last: Callable[[], logging.LogRecord | None] | None = getattr(_LAST, "record", None)
    _LAST.record = weakref.ref(record)
    return last is not None and last() is record


class LogHandler(logging.Handler):
    """Captures records with an exception from `event_level` up; other records become `log` breadcrumbs.

    A record without an exception is never an event (v0.1 has errors only). The library's own records are ignored.
    """

    def __init__(
        self,
        level: int = logging.INFO,
        event_level: int = logging.ERROR,
        *,
        current: Callable[[], Client | None] = current,
    ) -> None:
        super().__init__(level)
        self._event_level = event_level
        self._current = current

    def handle(self, record: logging.LogRecord) -> bool:
        """Handle a record without the handler's lock: it isn't needed, and a capture must not block."""
        accepted = bool(self.filter(record))
        if accepted:
            self.emit(record)
        return accepted

    def emit(self, record: logging.LogRecord) -> None:
        """Capture the record or add its breadcrumb; never raises."""
        client = self._current()
        if client is None or record.name == LOGGER:
            return
        try:
            repeated = _is_repeated(record)
            error = record.exc_info[1] if record.exc_info else None
            if error is not None and record.levelno >= self._event_level:
                client.capture_uncaught(error, handled=record.name not in _OF_SERVERS)
                return
            if repeated:
                return
            data = {"level": record.levelname.lower(), "message": record.getMessage(), "logger": record.name}
            client.add_breadcrumb({"type": "log", "data": data})
        except Exception:
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:
        """Do nothing: the application's other handlers report a record that cannot be formatted."""
