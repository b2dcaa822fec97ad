"""Throttles log messages that the Kafka client repeats several times a second during an outage."""

import logging
import time
from collections.abc import Callable
from typing import Final

_LOGGERS: Final = ("aiokafka", "broker.client")
_PAUSE_SECONDS: Final = 30.0


class RepeatFilter(logging.Filter):
    """Passes each distinct message of the loggers above once in 30 s."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._passed_at: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is logged."""
        if not record.name.startswith(_LOGGERS):
            return True
        message = record.name, record.getMessage()
        now = self._now()
        if now - self._passed_at.get(message, -_PAUSE_SECONDS) < _PAUSE_SECONDS:
            return False
        self._passed_at = {
            known: passed_at
            for known, passed_at in self._passed_at.items()
            if now - passed_at < _PAUSE_SECONDS
        }
        self._passed_at[message] = now
        return True


def throttle_repeats() -> None:
    """Add the filter to every handler of the root logger."""
    repeats = RepeatFilter()
    for handler in logging.getLogger().handlers:
        handler.addFilter(repeats)
