"""Says what Kafka's client repeats several times a second during an outage once in a while instead."""

import logging
import time
from collections.abc import Callable
from typing import Final

_LOGGERS: Final = ("aiokafka", "broker.client")
_PAUSE_SECONDS: Final = 30.0


class RepeatFilter(logging.Filter):
    """Lets a sentence of the loggers above through once in 30 s; the number in it, or another topic, makes another sentence."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._said: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is to be written."""
        if not record.name.startswith(_LOGGERS):
            return True
        sentence = record.name, record.getMessage()
        now = self._now()
        if now - self._said.get(sentence, -_PAUSE_SECONDS) < _PAUSE_SECONDS:
            return False
        self._said = {known: at for known, at in self._said.items() if now - at < _PAUSE_SECONDS}
        self._said[sentence] = now
        return True


def repeat_rarely() -> None:
    """Put the filter before every handler of this process's log."""
    rarely = RepeatFilter()
    for handler in logging.getLogger().handlers:
        handler.addFilter(rarely)
