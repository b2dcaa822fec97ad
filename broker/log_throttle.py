"""Throttles log messages that repeat several times a second.

The clients repeat theirs during an outage, and all parts repeat theirs about a lost right.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

from broker.errors import PartitionsLost
from broker.send_errors import SendErrorKind, kind_of

_LOGGERS: Final = ("aiokafka", "broker.client", "clickhouse_connect")
_PAUSE_SECONDS: Final = 30.0
_REFUSED_SECONDS: Final = 60.0
_GRACE_SECONDS: Final = 10.0
_REFUSALS: Final = (
    "not authorized",
    "unauthorized topics",
    "authorizationfailed",
    "lacks a right",
    "not enough privileges",
)
_WATCH: Final = "broker.rights_watch"


class RepeatFilter(logging.Filter):
    """Passes each distinct message of the loggers above once in 30 s.

    `broker.rights_watch` names each missing right. Other loggers' messages about a refusal pass once a minute
    in total, without a traceback, and only if that watch has named nothing in 10 s.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._passed_at: dict[tuple[str, str], float] = {}
        self._quiet_until = self._first_at = self._last_at = -_REFUSED_SECONDS

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is logged."""
        now = self._now()
        if isinstance(_error_of(record), PartitionsLost):
            # A takeover is no fault of the code: the last line of the process says what happened.
            record.exc_info = None
        if record.name == _WATCH:
            self._quiet_until = now + _REFUSED_SECONDS + _GRACE_SECONDS
            return True
        if _is_refusal(record):
            record.exc_info = None
            return record.levelno >= logging.CRITICAL or self._unnamed(now)
        if not record.name.startswith(_LOGGERS):
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

    def _unnamed(self, now: float) -> bool:
        """Whether a refusal is logged that the watch has not named."""
        if now - self._last_at >= _REFUSED_SECONDS:
            self._first_at = now
        self._last_at = now
        if now < max(self._quiet_until, self._first_at + _GRACE_SECONDS):
            return False
        self._quiet_until = now + _REFUSED_SECONDS
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
