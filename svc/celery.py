"""Celery: it keeps what a task raises as the task's result; its signal tells of each failure."""

import sys
from typing import Any, Final

from celery import signals

from svc.client import current
from svc.exceptions import captured_event_id, mark_captured
from svc.reporting import flush, never_raises
from svc.request_scope import RequestScope

_ACTIVE: Final = "svc_active_scope"
_LAST_FLUSH_SECONDS: Final = 2.0


@never_raises(None)
def watch() -> None:
    """Report every task that fails, with its name as the tag `task`; each task has a scope of its own. Twice is once.

    Neither arguments nor results are sent. A failure that is retried is reported when no retry is left.
    """
    for signal, receiver in (
        (signals.task_prerun, _begun),
        (signals.task_failure, _failed),
        (signals.task_postrun, _ended),
        (signals.worker_process_shutdown, _worker_ends),
    ):
        signal.connect(receiver, weak=False, dispatch_uid=f"svc.{receiver.__name__}")


@never_raises(None)
def _begun(task: Any, **_: Any) -> None:
    active = RequestScope().active()
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
    client.capture_uncaught(raised, tags={"task": sender.name})
    # What cannot be pickled has a stand-in, which Celery logs next.
    if event_id := captured_event_id(raised):
        mark_captured(exception, event_id)


def _worker_ends(**_: Any) -> None:
    """A worker process of Celery's ends without `atexit`."""
    flush(_LAST_FLUSH_SECONDS)
