"""The client: options, scope, event builder and transport, used by the public functions from `init` to `close`."""

import copy
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import islice
from types import FrameType
from typing import Any, Final, TypeVar

from svc.breadcrumbs import breadcrumb_for_client, to_breadcrumb
from svc.event import Builder, CapturedError, fit_event
from svc.exception_chain import ExceptionInfo, chain, message_chain
from svc.exceptions import captured_event_id, mark_captured
from svc.notices import Notices
from svc.options import Options
from svc.own_tags import OwnTags
from svc.plain import text_of
from svc.scope import REQUEST_SCOPE, ActiveScope, EventScope
from svc.spool import EventSpool
from svc.timestamps import Ids
from svc.transport import Transport
from svc.upload import Uploader

VERSION: Final = "0.2.0"
SDK: Final = f"svc-python/{VERSION}"
_ENDINGS: Final = (KeyboardInterrupt, SystemExit, GeneratorExit)
A = TypeVar("A")
R = TypeVar("R")


class Client:
    """A configured library. Without a token it maintains the scope and sends nothing."""

    def __init__(self, options: Options, notices: Notices, transport: Transport | None = None) -> None:
        self.options = options
        self.counts: Counter[str] = Counter()
        self.process_scope = EventScope(
            notices, self.counts, options.identity, max(1, options.breadcrumb_capacity)
        )
        self._notices = notices
        self.builder = Builder(options)
        self._own_tags = OwnTags(options)
        self.ids = Ids()
        self._busy = threading.local()
        self._spool = self._open_spool() if options.token else None
        self.transport = transport or self._transport()
        if self.transport is not None and self._spool is not None and self._spool.has_leftovers():
            self.transport.wake()

    @property
    def scope(self) -> EventScope:
        """The scope that the public functions act on: the request's if there is one, otherwise the process's."""
        active = self._active()
        return self.process_scope if active is None else active.request

    def _active(self) -> ActiveScope | None:
        active = REQUEST_SCOPE.get()
        return active if active is not None and active.process is self.process_scope else None

    def _open_spool(self) -> EventSpool | None:
        if self.options.queue_dir is None:
            return None
        spool = EventSpool(str(self.options.queue_dir), int(self.options.queue_bytes))
        if spool.open():
            return spool
        self._notices.once(
            "queue_dir", "the queue directory cannot be used; events are queued in memory only"
        )
        return None

    def _transport(self) -> Transport | None:
        options = self.options
        if options.token is None:
            return None
        return Transport(
            Uploader(options.ingest_url, options.token, SDK, float(options.request_timeout) or 10.0),
            self.counts,
            self._notices,
            spool=self._spool,
            on_rejected=options.on_rejected,
            max_events=max(1, options.queue_size),
            max_bytes=int(options.queue_bytes),
            interval=float(options.flush_interval),
        )

    def capture(
        self,
        error: BaseException,
        *,
        tags: Mapping[str, object] | None = None,
        user: Mapping[str, Any] | None = None,
        fingerprint: Iterable[object] | None = None,
        caller: FrameType | None = None,
        handled: bool = True,
    ) -> str | None:
        """Snapshot the error and the scope, and queue them; returns the event's id, or None if nothing is sent.

        `handled` says whether the application caught the error. Nested captures are ignored: an exception's `__str__`
        may log or fail in turn.
        """
        captured = self._capture(partial(chain, error, caller), tags, user, fingerprint, handled)
        if captured is None:
            return None
        mark_captured(error, captured.id)
        return captured.id if self._queue(captured) else None

    def capture_message(
        self, kind: str, message: str, *, template: str, caller: FrameType | None, handled: bool
    ) -> None:
        """Capture an error without an exception; `kind` and `template` decide its issue."""
        read = partial(message_chain, kind, message, caller)
        captured = self._capture(read, None, None, (kind, template), handled)
        if captured is not None:
            self._queue(captured)

    def _capture(
        self,
        read: Callable[[], list[ExceptionInfo]],
        tags: Mapping[str, object] | None,
        user: Mapping[str, Any] | None,
        fingerprint: Iterable[object] | None,
        handled: bool,
    ) -> CapturedError | None:
        if self.transport is None or getattr(self._busy, "now", False):
            return None
        self._busy.now = True
        try:
            captured = self._snapshot(read, tags, user, fingerprint, handled)
        finally:
            self._busy.now = False
        self.counts["captured"] += 1
        return captured

    def _snapshot(
        self,
        read: Callable[[], list[ExceptionInfo]],
        tags: Mapping[str, object] | None,
        user: Mapping[str, Any] | None,
        fingerprint: Iterable[object] | None,
        handled: bool,
    ) -> CapturedError:
        ns = time.time_ns()
        scope = self.scope.snapshot()
        if (event_tags := self._argument("tags", self.scope.merged, tags)) is not None:
            scope = scope._replace(tags=event_tags)
        if (event_user := self._argument("user", self.scope.user_of, user)) is not None:
            scope = scope._replace(user=event_user)
        active = self._active()
        own_tags = self._own_tags.added_to(scope.tags, handled, None if active is None else active.tags)
        scope = scope._replace(tags=own_tags)
        group = self._argument("fingerprint", _fingerprint, fingerprint)
        return CapturedError(self.ids.new(ns), ns, read(), scope, group)

    def _argument(self, name: str, read: Callable[[A], R], value: A | None) -> R | None:
        """Read an argument of `capture_exception`; an invalid one is left out and must not cost the event."""
        if value is None:
            return None
        try:
            return read(value)
        except Exception as error:
            self._notices.once(f"bad {name}", "capture_exception: %s left out: %r", name, error)
            return None

    def _queue(self, captured: CapturedError) -> bool:
        """With a queue on disk, build and write the event before returning: the process may be killed next."""
        assert self.transport is not None
        if self._spool is None:
            return self.transport.submit(captured.id, partial(self._build_event, captured))
        event = self._build_event(captured)
        if event is None:
            return False
        stored = self._spool.write(captured.id, event)
        if not stored:
            self.counts["unspooled"] += 1
            self._notices.once("unspooled", "the queue directory is full or cannot be written")
        return self.transport.submit(captured.id, event) or stored

    def _build_event(self, captured: CapturedError) -> bytes | None:
        event: dict[str, Any] | None = self.builder.event(captured)
        if self.options.before_send is not None and event is not None:
            event = self._before_send(event)
        encoded = None if event is None else fit_event(event)
        if event is not None and encoded is None:
            self.counts["dropped.tooLarge"] += 1
        return encoded

    def _before_send(self, event: dict[str, Any]) -> dict[str, Any] | None:
        """Apply `before_send`. If it raises, the event is dropped: it may be there to remove secrets."""
        assert self.options.before_send is not None
        try:
            result = self.options.before_send(copy.deepcopy(event))
        except Exception as error:
            self._notices.once("before_send", "before_send raised %r; the event is dropped", error)
            result = None
        if result is None:
            self.counts["dropped.beforeSend"] += 1
        return result

    def capture_uncaught(
        self,
        error: BaseException | None,
        *,
        tags: Mapping[str, object] | None = None,
        user: Mapping[str, Any] | None = None,
        handled: bool = False,
    ) -> None:
        """Capture for a hook, unless the application has captured the error or it only ends the program."""
        if error is None or issubclass(type(error), _ENDINGS):
            return
        if captured_event_id(error) is None:
            self.capture(error, tags=tags, user=user, handled=handled)

    def add_breadcrumb(self, crumb: Mapping[str, Any] | str) -> None:
        """Add a breadcrumb with the current time."""
        self.scope.add_crumb(to_breadcrumb(time.time_ns(), crumb))

    def breadcrumbs(self) -> list[dict[str, Any]]:
        """The breadcrumbs, oldest first."""
        return [breadcrumb_for_client(crumb) for crumb in self.scope.snapshot().crumbs]

    def after_fork(self) -> None:
        """In a forked child: reset locks, queue, thread, connection and ids; keep the scope."""
        self.ids = Ids()
        self._busy = threading.local()
        for scope in {self.process_scope, self.scope}:
            scope.reset_lock()
        if self.transport is not None:
            self.transport.after_fork()


class Current:
    """Set by `init`, and None again after `close`."""

    client: Client | None = None


def current() -> Client | None:
    """The client that the public functions and the integrations act on, or None before `init`."""
    return Current.client


def _fingerprint(parts: Iterable[object]) -> list[str]:
    """At most 20 parts as texts; a string is a single part."""
    return [text_of(part, 500) for part in ([parts] if isinstance(parts, str) else islice(parts, 20))]


_OWN_FOLDER: Final = os.path.dirname(__file__) + os.sep  # noqa: PTH120  # compared with names in code objects


def application_frame() -> FrameType | None:
    """The innermost frame outside this library."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_OWN_FOLDER):
        frame = frame.f_back
    return frame
