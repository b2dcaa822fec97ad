"""Throttles log messages that repeat several times a second.

The clients repeat theirs during an outage, and all parts repeat theirs about a lost right.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

from broker.errors import PartitionsLost
from broker.send_errors import SendErrorKind, kind_of

_LOGGERS: Final = ("aiokafka", "broker.client", "broker.startup", "clickhouse_connect")
_PAUSE_SECONDS: Final = 30.0
_REFUSALS: Final = (
    "not authorized",
    "unauthorized topics",
    "authorizationfailed",
    "lacks a right",
    "not enough privileges",
)


class RepeatFilter(logging.Filter):
    """Passes each distinct message of the loggers above, and of any logger about a refusal, once in 30 s.

    Messages about a refusal have no traceback.
    """

    def __init__(self, now: Callable[[], float] | None = None) -> None:
        super().__init__()
        self._now = now or time.monotonic
        self._passed_at: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is logged."""
        now, is_refusal = self._now(), _is_refusal(record)
        if is_refusal or isinstance(_error_of(record), PartitionsLost):
            # Not a bug, so no traceback: the message, or the last line of the process, names the cause.
            record.exc_info = None
        if record.levelno >= logging.CRITICAL or not (is_refusal or record.name.startswith(_LOGGERS)):
            return True
        message = record.name, record.getMessage()
        if now - self._passed_at.get(message, -_PAUSE_SECONDS) < _PAUSE_SECONDS:
            return False
        self._passed_at = {
            known: passed_at
            for known, passed_at in self._passed_at.items()
            if now - passed_at < _PAUSE_SECONDS
        }
        self._passed_at[message] = now
        return True


def _error_of(record: logging.LogRecord) -> BaseException | None:
    return record.exc_info[1] if record.exc_info else None


def _is_refusal(record: logging.LogRecord) -> bool:
    error = _error_of(record)
    if error is not None and kind_of(error) is SendErrorKind.DENIED:
        return True
    message = record.getMessage().lower()
    return any(text in message for text in _REFUSALS)


def throttle_repeats() -> None:
    """Add the filter to every handler of the root logger."""
    repeats = RepeatFilter()
    for handler in logging.getLogger().handlers:
        handler.addFilter(repeats)
