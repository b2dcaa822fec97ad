"""Logging: JSON lines, or plain text on a terminal (contract, section 1)."""

import json
import logging
import os
import sys
import threading
from datetime import UTC, datetime
from types import TracebackType

from broker.log_throttle import throttle_repeats
from schemas.service_variables import service_variables

log = logging.getLogger(__name__)

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
NOISY = ("aiokafka", "faust", "mode", "asyncio", "aiohttp.access", "urllib3")


class JsonFormatter(logging.Formatter):
    """A record as one JSON object: time, level, logger, message, the fields of `extra`, and the exception.

    Every log call of ours has the field `event`, a key for alerts (docs/operate/monitor.md).
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line, without a newline."""
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


def _log_uncaught() -> None:
    """Log warnings and uncaught exceptions too."""
    logging.captureWarnings(True)
    sys.excepthook = _uncaught
    sys.unraisablehook = _unraisable
    threading.excepthook = _in_thread


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
    else:
        log.critical(
            "uncaught: %s",
            _describe(error),
            exc_info=(kind, error, trace),
            extra={"event": "uncaught_raised"},
        )


def _unraisable(args: "sys.UnraisableHookArgs") -> None:
    error = _describe(args.exc_value) if args.exc_value else args.exc_type.__name__
    log.error(
        "%s %r: %s",
        args.err_msg or "ignored in",
        args.object,
        error,
        extra={"event": "unraisable_raised"},
    )


def _in_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
        name = args.thread.name if args.thread else "a thread"
        log.error(
            "uncaught in %s: %s",
            name,
            _describe(args.exc_value),
            exc_info=args.exc_value,
            extra={"event": "thread_uncaught_raised"},
        )


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def configure(level: str) -> None:
    """Send this process's log to standard error. Libraries log warnings and above only."""
    handler = logging.StreamHandler(sys.stderr)
    if sys.stderr.isatty():
        handler.setFormatter(
            logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s", "%H:%M:%S")
        )
    else:
        handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    throttle_repeats()
    _log_uncaught()
    for name in NOISY:
        # The debug and info records of Faust and aiokafka cost a tenth of the throughput.
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger().level))
    if ignored := service_variables(os.environ):
        # Kubernetes sets these for a service whose name begins like our settings. They have no effect.
        log.warning(
            "ignoring variables that Kubernetes sets for a service: %s",
            ", ".join(ignored),
            extra={"event": "service_variables_ignored"},
        )
