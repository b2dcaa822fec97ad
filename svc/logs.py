"""The standard `logging`, as a source of breadcrumbs and of errors."""

import logging
from collections.abc import Callable

from svc.client import Client, current
from svc.notices import LOGGER


class LogHandler(logging.Handler):
    """A record with an exception, of `event_level` or above, is captured; other records become `log` breadcrumbs.

    There are no events without an exception (v0.1 has errors only). The library's own records are left alone.
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
        """Take a record without the handler's lock: nothing here needs it, and a capture must wait for nobody."""
        passed = bool(self.filter(record))
        if passed:
            self.emit(record)
        return passed

    def emit(self, record: logging.LogRecord) -> None:
        """Note one record; never raises."""
        client = self._current()
        if client is None or record.name == LOGGER:
            return
        try:
            error = record.exc_info[1] if record.exc_info else None
            if error is not None and record.levelno >= self._event_level:
                client.capture_uncaught(error)
                return
            data = {"level": record.levelname.lower(), "message": record.getMessage(), "logger": record.name}
            client.add_breadcrumb({"type": "log", "data": data})
        except Exception:
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:
        """A record whose message cannot be formatted is reported by the application's other handlers, not twice."""
