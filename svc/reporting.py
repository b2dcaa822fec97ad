"""The public functions: they act on the current client, do nothing before `init`, and never raise."""

import atexit
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

from svc.client import Client, Current, application_frame, current
from svc.exceptions import is_exception, traceback_of
from svc.hooks import Hooks
from svc.notices import Notices
from svc.options import resolve

P = ParamSpec("P")
R = TypeVar("R")
D = TypeVar("D")


class _State:
    """Process-wide state, shared by successive clients."""

    hooks: Hooks | None = None
    notices = Notices()
    lock = threading.RLock()
    registered = False
    hooked_multiprocessing = False


def never_raises(default: D) -> Callable[[Callable[P, R]], Callable[P, R | D]]:
    """Log an error of the library once and return `default`, so that it never reaches the application."""

    def wrap(function: Callable[P, R]) -> Callable[P, R | D]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R | D:
            try:
                return function(*args, **kwargs)
            except Exception as error:
                _State.notices.once(
                    f"fault in {function.__name__}", "%s failed: %r", function.__name__, error
                )
                return default

        return call

    return wrap


@never_raises(None)
def init(token: str | None = None, release: str | None = None, **options: Any) -> None:
    """Start reporting. `svc/options.py` lists all options; each may be spelled `ingest_url` or `ingestUrl`.

    Token and ingest URL default to SVC_TOKEN and SVC_INGEST_URL, the latter to http://127.0.0.1:8080. An invalid option
    is logged and replaced by its default; without a token nothing is sent. A second call replaces the first.
    """
    close()
    resolved, problems = resolve({"token": token, "release": release, **options}, os.environ)
    for problem in problems:
        _State.notices.once(problem, "%s", problem)
    with _State.lock:
        client = Current.client = Client(resolved, _State.notices)
        hooks = _State.hooks = Hooks(current)
        if not _State.registered:
            _State.registered = True
            atexit.register(_at_exit)
            if hasattr(os, "register_at_fork"):
                os.register_at_fork(before=_before_fork, after_in_child=_after_fork)
        hooks.install(resolved.capture, has_transport=client.transport is not None)
    _before_fork()
    _finalise_in_worker_process()


@never_raises(None)
def capture_exception(
    error: BaseException | None = None,
    *,
    tags: Mapping[str, object] | None = None,
    user: Mapping[str, Any] | None = None,
    fingerprint: Iterable[object] | None = None,
) -> str | None:
    """Report an exception (default: the one being handled) and its causes; returns the event's id, or None if not sent.

    `tags` and `user` override those of the scope for this event. `fingerprint` suggests a grouping.
    """
    client = Current.client
    if client is None:
        return None
    if error is None:
        error = sys.exc_info()[1]
    if error is None or not is_exception(error):
        _State.notices.once("capture_exception", "capture_exception takes an exception; there was none")
        return None
    caller = application_frame() if traceback_of(error) is None else None
    return client.capture(error, tags=tags, user=user, fingerprint=fingerprint, caller=caller)


@never_raises(None)
def set_user(user: Mapping[str, Any] | None) -> None:
    """Set the user of later events: `id`, `name`, `anonymous`, `linkBy`; None clears it (protocol, 2.11)."""
    if Current.client is not None:
        Current.client.scope.set_user(user)


@never_raises(None)
def set_tag(key: str, value: str | None) -> None:
    """Set a tag on later events; None removes it."""
    if Current.client is not None:
        Current.client.scope.set_tags({key: value})


@never_raises(None)
def set_tags(record: Mapping[str, str | None]) -> None:
    """Add several tags to later events."""
    if Current.client is not None:
        Current.client.scope.set_tags(record)


@never_raises(None)
def clear_tags() -> None:
    """Remove all tags."""
    if Current.client is not None:
        Current.client.scope.clear_tags()


@never_raises(None)
def add_breadcrumb(crumb: Mapping[str, Any] | str | None = None, **fields: Any) -> None:
    """Add a breadcrumb to later events: `message`, `type`, `level`, `data`, as a mapping or keywords, all optional."""
    client = Current.client
    if client is not None:
        if fields:
            fields = {**({"message": crumb} if isinstance(crumb, str) else crumb or {}), **fields}
            client.add_breadcrumb(fields)
        else:
            client.add_breadcrumb({} if crumb is None else crumb)


def get_breadcrumbs() -> list[dict[str, Any]]:
    """The breadcrumbs of the next event, oldest first: `timestamp`, `type`, `data`, `message`, `level`."""
    return _breadcrumbs() or []


@never_raises(None)
def _breadcrumbs() -> list[dict[str, Any]]:
    return [] if Current.client is None else Current.client.breadcrumbs()


@never_raises(None)
def clear_breadcrumbs() -> None:
    """Remove all breadcrumbs."""
    if Current.client is not None:
        Current.client.scope.clear_crumbs()


@never_raises(None)
def track(name: str, data: Mapping[str, Any] | None = None) -> None:
    """Record an application event as a breadcrumb, unless `track_auto_breadcrumb` is False."""
    client = Current.client
    if client is not None and client.options.track_auto_breadcrumb:
        client.add_breadcrumb({"type": "track", "message": name, "data": data})


@never_raises(None)
def session_active() -> None:
    """The application moved to the foreground: a breadcrumb if `capture.sessions` is on."""
    _session("active")


@never_raises(None)
def session_background() -> None:
    """The application moved to the background: a breadcrumb if `capture.sessions` is on."""
    _session("background")


def _session(action: str) -> None:
    client = Current.client
    if client is not None and client.options.capture.sessions:
        client.add_breadcrumb({"type": "user", "data": {"action": action, "target": "app"}})


@never_raises(None)
def watch_loop(loop: Any = None) -> None:
    """Report unhandled errors in the tasks and callbacks of an asyncio loop (default: the running one).

    Needed only for third-party loops such as uvloop's, and if asyncio is imported after `init`.
    """
    if _State.hooks is not None:
        _State.hooks.watch_loop(loop)


@never_raises(default=False)
def flush(timeout: float = 5.0) -> bool:
    """Send queued events; blocks; true if the outcome of all is known within `timeout` seconds."""
    client = Current.client
    return client is None or client.transport is None or client.transport.flush(timeout)


@never_raises(default=False)
def close(timeout: float | None = None) -> bool:
    """`flush` within `timeout` seconds (default: `shutdown_timeout`), remove the hooks, undo `init`."""
    with _State.lock:
        client, Current.client = Current.client, None
        hooks, _State.hooks = _State.hooks, None
    if hooks is not None:
        hooks.remove()
    if client is None or client.transport is None:
        return True
    return client.transport.close(client.options.shutdown_timeout if timeout is None else timeout)


def stats() -> dict[str, int]:
    """Event counts since `init`: captured, sent, rejected, retries, dropped by reason, tags clipped and dropped."""
    return {} if Current.client is None else dict(Current.client.counts)


@never_raises(None)
def _at_exit() -> None:
    close()


@never_raises(None)
def _after_fork() -> None:
    _State.lock = threading.RLock()
    if Current.client is not None:
        Current.client.after_fork()


@never_raises(None)
def _before_fork() -> None:
    """Register `_at_exit` in children of `multiprocessing`.

    They skip `atexit`, and clear the finalisers when they start.
    """
    if "multiprocessing.util" in sys.modules and not _State.hooked_multiprocessing:
        from multiprocessing import util

        _State.hooked_multiprocessing = True
        util.register_after_fork(_State, _finalise_at_end)


def _finalise_in_worker_process() -> None:
    """The same if `init` runs in such a child."""
    if "multiprocessing.process" in sys.modules:
        from multiprocessing import process

        if process.parent_process() is not None:
            _finalise_at_end(_State)


def _finalise_at_end(_: object) -> None:
    from multiprocessing import util

    util.Finalize(None, _at_exit, exitpriority=100)
