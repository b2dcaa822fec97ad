"""Logging: one JSON object a line, or plain text on a terminal (contract, section 1)."""

import json
import logging
import os
import sys
import threading
from datetime import UTC, datetime
from types import TracebackType
from typing import TextIO

from schemas.service_variables import service_variables

log = logging.getLogger(__name__)

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
NOISY = ("aiokafka", "faust", "mode", "asyncio", "aiohttp.access", "urllib3")


class JsonFormatter(logging.Formatter):
    """A record as one JSON object: time, level, logger, message, what was passed as `extra`, and the exception."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {k: v for k, v in record.__dict__.items() if k not in _STANDARD}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


def _catch_what_passes_by() -> None:
    """Warnings and uncaught exceptions are lines of the log too."""
    logging.captureWarnings(True)
    sys.excepthook = _uncaught
    sys.unraisablehook = _unraisable
    threading.excepthook = _in_thread


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
    else:
        log.critical("uncaught: %s", _said(error), exc_info=(kind, error, trace))


def _unraisable(found: "sys.UnraisableHookArgs") -> None:
    said = _said(found.exc_value) if found.exc_value else found.exc_type.__name__
    log.error("%s %r: %s", found.err_msg or "ignored in", found.object, said)


def _in_thread(found: threading.ExceptHookArgs) -> None:
    if found.exc_value is not None and not isinstance(found.exc_value, SystemExit):
        name = found.thread.name if found.thread else "a thread"
        log.error("uncaught in %s: %s", name, _said(found.exc_value), exc_info=found.exc_value)


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def configure(level: str, stream: TextIO | None = None) -> None:
    """Send this process's log to `stream` (standard error). Libraries speak from warnings upwards only."""
    out = stream or sys.stderr
    handler = logging.StreamHandler(out)
    if out.isatty():
        handler.setFormatter(
            logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s", "%H:%M:%S")
        )
    else:
        handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    _catch_what_passes_by()
    for name in NOISY:
        # Faust's and aiokafka's own debug and info records cost a tenth of the throughput.
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger().level))
    if passed_over := service_variables(os.environ):
        # A service that is named like ours; where one of them was meant as a setting, this says why it has no effect.
        log.warning("passed over, made by Kubernetes for a service: %s", ", ".join(passed_over))
