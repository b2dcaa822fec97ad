"""Options, scope, builder and transport put together: what the public functions act on between `init` and `close`."""

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
from svc.exception_chain import chain
from svc.exceptions import captured_event_id, mark_captured
from svc.notices import Notices
from svc.options import Options
from svc.plain import text_of
from svc.scope import OF_REQUEST, Scope
from svc.spool import EventSpool
from svc.timestamps import Ids
from svc.transport import Transport
from svc.upload import Uploader

VERSION: Final = "0.1.0"
SDK: Final = f"svc-python/{VERSION}"
_ENDINGS: Final = (KeyboardInterrupt, SystemExit, GeneratorExit)
A = TypeVar("A")
R = TypeVar("R")


class Client:
    """One configuration of the library. Without a token it keeps its scope and sends nothing."""

    def __init__(self, options: Options, notices: Notices, transport: Transport | None = None) -> None:
        self.options = options
        self.counts: Counter[str] = Counter()
        self.process_scope = Scope(
            notices, self.counts, options.identity, max(1, options.breadcrumb_capacity)
        )
        self._notices = notices
        self._builder = Builder(options)
        self._ids = Ids()
        self._busy = threading.local()
        self._spool = self._open_spool() if options.token else None
        self.transport = transport or self._transport()
        if self.transport is not None and self._spool is not None and self._spool.has_leftovers():
            self.transport.wake()

    @property
    def scope(self) -> Scope:
        """The scope that the public functions act on: the request's, elsewhere the process's."""
        found = OF_REQUEST.get()
        return found[1] if found is not None and found[0] is self.process_scope else self.process_scope

    def _open_spool(self) -> EventSpool | None:
        if self.options.queue_dir is None:
            return None
        spool = EventSpool(str(self.options.queue_dir), int(self.options.queue_bytes))
        if spool.open():
            return spool
        self._notices.once("queue_dir", "the queue directory cannot be used; events are kept in memory alone")
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
    ) -> str | None:
        """Take a picture of the error and the scope, and queue it; the event's id, or None where nothing is sent.

        An exception's own `__str__` may log or fail in turn: what is captured while capturing is left out.
        """
        if self.transport is None or getattr(self._busy, "now", False):
            return None
        self._busy.now = True
        try:
            captured = self._capture_error(error, tags, user, fingerprint, caller)
        finally:
            self._busy.now = False
        self.counts["captured"] += 1
        mark_captured(error, captured.id)
        return captured.id if self._queue(captured) else None

    def _capture_error(
        self,
        error: BaseException,
        tags: Mapping[str, object] | None,
        user: Mapping[str, Any] | None,
        fingerprint: Iterable[object] | None,
        caller: FrameType | None,
    ) -> CapturedError:
        ns = time.time_ns()
        scope = self.scope.snapshot()
        if (own_tags := self._given("tags", self.scope.merged, tags)) is not None:
            scope = scope._replace(tags=own_tags)
        if (own_user := self._given("user", self.scope.user_of, user)) is not None:
            scope = scope._replace(user=own_user)
        group = self._given("fingerprint", _fingerprint, fingerprint)
        return CapturedError(self._ids.new(ns), ns, chain(error, caller), scope, group)

    def _given(self, what: str, read: Callable[[A], R], value: A | None) -> R | None:
        """What a capture was given for its event alone; what can't be read must not cost the event."""
        if value is None:
            return None
        try:
            return read(value)
        except Exception as error:
            self._notices.once(f"bad {what}", "capture_exception: %s left out: %r", what, error)
            return None

    def _queue(self, captured: CapturedError) -> bool:
        """With a queue on disk the event is developed and written before the capture returns: the next line may kill us."""
        assert self.transport is not None
        if self._spool is None:
            return self.transport.submit(captured.id, partial(self._build_event, captured))
        event = self._build_event(captured)
        if event is None:
            return False
        kept = self._spool.write(captured.id, event)
        if not kept:
            self.counts["unspooled"] += 1
            self._notices.once("unspooled", "the queue directory takes no more events")
        return self.transport.submit(captured.id, event) or kept

    def _build_event(self, captured: CapturedError) -> bytes | None:
        event: dict[str, Any] | None = self._builder.event(captured)
        if self.options.before_send is not None and event is not None:
            event = self._before_send(event)
        made = None if event is None else fit_event(event)
        if event is not None and made is None:
            self.counts["dropped.tooLarge"] += 1
        return made

    def _before_send(self, event: dict[str, Any]) -> dict[str, Any] | None:
        """What `before_send` makes of the event. If it fails nothing is sent: it may be there to keep secrets in."""
        assert self.options.before_send is not None
        try:
            looked_over = self.options.before_send(copy.deepcopy(event))
        except Exception as error:
            self._notices.once("before_send", "before_send raised %r; the event is dropped", error)
            looked_over = None
        if looked_over is None:
            self.counts["dropped.beforeSend"] += 1
        return looked_over

    def capture_uncaught(
        self,
        error: BaseException | None,
        *,
        tags: Mapping[str, object] | None = None,
        user: Mapping[str, Any] | None = None,
    ) -> None:
        """Capture for a hook: not what the application has captured already, nor what only ends a program."""
        if error is None or issubclass(type(error), _ENDINGS):
            return
        if captured_event_id(error) is None:
            self.capture(error, tags=tags, user=user)

    def add_breadcrumb(self, given: Mapping[str, Any] | str) -> None:
        """Put a breadcrumb into the ring, with the present time."""
        self.scope.add_crumb(to_breadcrumb(time.time_ns(), given))

    def breadcrumbs(self) -> list[dict[str, Any]]:
        """The ring, oldest first."""
        return [breadcrumb_for_client(crumb) for crumb in self.scope.snapshot().crumbs]

    def after_fork(self) -> None:
        """In a forked child: locks, queue, thread, connection and ids start anew; the scope stays as it was."""
        self._ids = Ids()
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
    """At most 20 parts as texts; one text is one part."""
    return [text_of(part, 500) for part in ([parts] if isinstance(parts, str) else islice(parts, 20))]


_OWN_FOLDER: Final = os.path.dirname(__file__) + os.sep  # noqa: PTH120  # compared with names in code objects


def application_frame() -> FrameType | None:
    """The innermost frame that is not this library's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_OWN_FOLDER):
        frame = frame.f_back
    return frame
