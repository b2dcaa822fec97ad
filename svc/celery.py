"""Celery stores a task's exception as its result; failures are captured through Celery's signals."""

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from celery import signals

from svc.client import current
from svc.exceptions import captured_event_id, mark_captured
from svc.reporting import flush, never_raises
from svc.request_scope import RequestScope
from svc.scope import REQUEST_SCOPE

_ACTIVE: Final = "svc_active_scope"
_LAST_FLUSH_SECONDS: Final = 2.0


@never_raises(None)
def watch() -> None:
    """Report every failed task, with its name as the tag `task`, and give each task its own scope. Idempotent.

    Arguments and results are not sent. A retried task is reported after its last retry.
    """
    for signal, receiver in (
        (signals.task_prerun, _begun),
        (signals.task_failure, _failed),
        (signals.task_postrun, _ended),
        (signals.worker_process_shutdown, _worker_ends),
    ):
        signal.connect(receiver, weak=False, dispatch_uid=f"svc.{receiver.__name__}")


def _active_scope(task: str) -> AbstractContextManager[None]:
    return RequestScope().active(lambda: {"task": task})


@never_raises(None)
def _begun(task: Any, **_: Any) -> None:
    active = _active_scope(task.name)
    active.__enter__()
    setattr(task.request, _ACTIVE, active)


@never_raises(None)
def _ended(task: Any, **_: Any) -> None:
    active = getattr(task.request, _ACTIVE, None)
    if active is not None:
        active.__exit__(None, None, None)


@never_raises(None)
def _failed(sender: Any, exception: BaseException, **_: Any) -> None:
    client = current()
    if client is None:
        return
    raised = sys.exc_info()[1] or exception
    # A worker that was killed is reported by its parent, in which the task never began.
    with nullcontext() if REQUEST_SCOPE.get() else _active_scope(sender.name):
        client.capture_uncaught(raised)
    # Celery replaces an exception that cannot be pickled, and logs the replacement next.
    if event_id := captured_event_id(raised):
        mark_captured(exception, event_id)


def _worker_ends(**_: Any) -> None:
    """Celery's worker processes exit without running `atexit`."""
    flush(_LAST_FLUSH_SECONDS)
