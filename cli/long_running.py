"""Checked settings, the log, and the end of a long-running process.

`svc edge`, `processors`, `writer`, `dashboard` and `notify` share them.
"""

import logging
import os
import sys
from collections.abc import Callable, Mapping
from typing import NoReturn, TypeVar

import click

from cli.failures import BAD_SETTING_STATUS, fail
from cli.logs import configure
from runtime.memory import trim_in_background
from schemas.environment import load
from schemas.errors import BadSetting, CannotRun
from schemas.settings import KafkaSettings

log = logging.getLogger(__name__)
S = TypeVar("S", bound=KafkaSettings)


def settings_of(context: click.Context, struct: type[S], check: Callable[[S], None], *required: str) -> S:
    """The process's settings. One that is bad, or required and not set, ends the process with status 2 and one line."""
    environ: Mapping[str, str] = getattr(context.obj, "environ", os.environ)
    try:
        settings = load(struct, environ)
        _require(settings, "kafka_bootstrap", *required)
        check(settings)
    except BadSetting as error:
        fail(str(error), BAD_SETTING_STATUS)
    return settings


def _require(settings: KafkaSettings, *names: str) -> None:
    for name in names:
        if not getattr(settings, name):
            raise BadSetting(f"SVC_{name.upper()} is required")


def run_process(main: Callable[[], object], settings: KafkaSettings, *, collect: bool = False) -> NoReturn:
    """Run `main` with its log, then end the process.

    If `main` can't run, it ends with status 1 and one line; after any other failure with a traceback.

    The interpreter's cleanup is left out. Everything is written and closed by now, and after a failure
    objects in its traceback would outlive the sketches' library, which then lists each of its functions on
    standard error. `collect` is that of `trim_in_background`.
    """
    configure(settings.log_level)
    trim_in_background(collect=collect)
    status = 1
    try:
        main()
        status = 0
    except CannotRun as error:
        log.critical("the process stops: %s", error, extra={"event": "process_refused"})
    except Exception:
        log.critical(
            "the process stops: accepted events are kept, restart it",
            exc_info=True,
            extra={"event": "process_failed"},
        )
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
