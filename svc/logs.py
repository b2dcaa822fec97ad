"""The standard `logging` module as a source of breadcrumbs and errors."""

import logging
import re
import sys
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Final

from svc.client import Client, current
from svc.notices import LOGGER
from svc.plain import text_of

_OF_SERVERS = frozenset(
    {"aiohttp.server", "django.request", "gunicorn.error", "hypercorn.error", "uvicorn.error", "waitress"}
)
"""Loggers through which a server reports an exception that the application has not handled."""
_LAST = threading.local()
_WITH_DIGIT: Final = re.compile(r"\S*\d\S*")


def _is_repeated(record: logging.LogRecord) -> bool:
    """Whether this thread's last record was this one: a handler of the application and the hook both get it.

    A mark on the record itself would be in the output of formatters that print every attribute.
    """
    last: Callable[[], logging.LogRecord | None] | None = getattr(_LAST, "record", None)
    _LAST.record = weakref.ref(record)
    return last is not None and last() is record


class LogHandler(logging.Handler):
    """Captures records with an exception from `event_level` up, and makes all records `log` breadcrumbs.

    An event so has the text that was logged with its exception. With `messages` the handler also captures records from
    `event_level` up that have no exception; these are no breadcrumbs. The library's own records are ignored.
    """

    def __init__(
        self,
        level: int = logging.INFO,
        event_level: int = logging.ERROR,
        *,
        messages: bool = False,
        current: Callable[[], Client | None] = current,
    ) -> None:
        super().__init__(level)
        self._event_level = event_level
        self._messages = messages
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
            is_error = record.levelno >= self._event_level
            handled = record.name not in _OF_SERVERS
            if is_error and self._messages and error is None:
                if not repeated:
                    client.capture_message(
                        record.name or "root",
                        record.getMessage(),
                        template=_template(record),
                        caller=_caller(record),
                        handled=handled,
                    )
                return
            if not repeated:
                self._add_breadcrumb(client, record)
            if error is not None and is_error:
                client.capture_uncaught(error, handled=handled)
        except Exception:
            self.handleError(record)

    def _add_breadcrumb(self, client: Client, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
        except Exception:
            # Arguments that don't fit the text: its exception is captured all the same.
            self.handleError(record)
            return
        data = {"level": record.levelname.lower(), "message": message, "logger": record.name}
        client.add_breadcrumb({"type": "log", "data": data})

    def handleError(self, record: logging.LogRecord) -> None:
        """Do nothing: the application's other handlers report a record that cannot be formatted."""


def _template(record: logging.LogRecord) -> str:
    """The text that the arguments are put into.

    An f-string has its values in the text already: the words with a digit, most of them, are taken out.
    """
    text = text_of(record.msg)
    return text if record.args else _WITH_DIGIT.sub("<*>", text)


def _caller(record: logging.LogRecord) -> FrameType | None:
    """The frame that logged the record; None in another thread, such as that of a `QueueListener`."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (frame.f_code.co_filename, frame.f_lineno) != (
        record.pathname,
        record.lineno,
    ):
        frame = frame.f_back
    return frame
