"""The way of an event from the application's thread to the server: a bounded queue, a background thread, batches.

The decisions are in `step`, which does what is due now and says how long nothing will be: the thread only calls it, and a
test calls it with a clock of its own. The application's side (`submit`) takes one lock that its own thread may take again
and never waits for the network, the disk or the background thread.
"""

import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from svc.answers import Answer, Fate, Patience
from svc.batches import has_room
from svc.limits import BATCH_EVENTS, MAX_BODY_BYTES
from svc.notices import Notices
from svc.spool import Spool

Make = Callable[[], bytes | None]
"""Develops an event into JSON; None where nothing is to be sent after all."""


class Clock(Protocol):
    """Monotonic seconds, and waiting for some of them."""

    def now(self) -> float: ...  # noqa: D102
    def sleep(self, seconds: float) -> None: ...  # noqa: D102


class SystemClock:
    """The machine's."""

    def now(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


class Poster(Protocol):
    """What is used of `Uploader`."""

    def post(self, events: Sequence[bytes], timeout: float | None = None) -> Answer: ...  # noqa: D102
    def close(self) -> None: ...  # noqa: D102
    def forget(self) -> None: ...  # noqa: D102


class Waiting(NamedTuple):
    """An event on its way: its place in the order, its id, when it came, and how to get its JSON."""

    order: int
    id: str
    at: float
    event: Make | bytes


class Ready(NamedTuple):
    """An event in its final form."""

    order: int
    id: str
    at: float
    event: bytes


class Transport:
    """Events in, batches out. `counts` says what became of them: sent, rejected, and dropped by reason."""

    def __init__(
        self,
        uploader: Poster,
        counts: Counter[str],
        notices: Notices,
        *,
        clock: Clock | None = None,
        spool: Spool | None = None,
        on_rejected: Callable[[list[dict[str, Any]]], None] | None = None,
        max_events: int = 1_000,
        max_bytes: int = 16 * 1_048_576,
        interval: float = 1.0,
    ) -> None:
        self._uploader = uploader
        self._counts = counts
        self._notices = notices
        self._clock = clock or SystemClock()
        self._spool = spool
        self._on_rejected = on_rejected
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._interval = interval
        self._clear()

    def _clear(self) -> None:
        self._lock = threading.RLock()
        self._pump = threading.Lock()
        self._settled = threading.Condition()
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._order = 0
        self._flush_to = 0
        self._done_to = 0
        self._incoming: deque[Waiting] = deque()
        self._ready: deque[Ready] = deque()
        self._ready_bytes = 0
        self._batch: list[Ready] = []
        self._patience = Patience()
        self._not_before = 0.0

    def submit(self, event_id: str, event: Make | bytes) -> bool:
        """Queue an event; false where the queue is full or closed, which is counted."""
        with self._lock:
            full = len(self._incoming) + len(self._ready) + len(self._batch) >= self._max_events
            taken = not full and not self._closed
            if taken:
                self._order += 1
                self._incoming.append(Waiting(self._order, event_id, self._clock.now(), event))
        # Outside the lock: logging takes locks of its own, under which somebody may be capturing.
        if taken:
            self.wake()
        else:
            self._drop("closed" if self._closed else "queueFull", 1)
        return taken

    def wake(self) -> None:
        """Let the background thread look again; starts it where it does not run."""
        if self._wake.empty():
            self._wake.put(None)
        if self._thread is None or not self._thread.is_alive():
            self._start()

    def _start(self) -> bool:
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return True
            thread = threading.Thread(target=self._run, name="svc-reporting", daemon=True)
            try:
                thread.start()
            except (
                RuntimeError
            ):  # the interpreter is ending, or the system has no thread to give: `flush` does the work
                return False
            self._thread = thread
            return True

    def _run(self) -> None:
        while not self._closed:
            wait = self._careful_step()
            if wait is None or wait > 0:
                try:
                    self._wake.get(timeout=wait)
                except queue.Empty:
                    continue
        self._uploader.close()

    def _careful_step(self, timeout: float | None = None) -> float | None:
        try:
            return self.step(timeout)
        except Exception as error:
            self._notices.once("step", "a batch was lost to a fault of the library: %r", error)
            self._drop("fault", len(self._batch))
            self._batch = []
            return 1.0

    def step(self, timeout: float | None = None) -> float | None:
        """Do what is due: develop events, gather a batch, post it. Seconds until something is due; None: nothing waits.

        `timeout` bounds the time on the network.
        """
        with self._pump:
            self._develop()
            now = self._clock.now()
            if now < self._not_before:
                return self._not_before - now
            if not self._batch:
                wait = self._gather(now)
                if not self._batch:
                    self._mark()
                    return wait
            answer = self._uploader.post([ready.event for ready in self._batch], timeout)
            self._settle(answer)
            self._mark()
            return 0.0

    def _develop(self) -> None:
        while self._incoming:
            order, event_id, at, event = self._incoming[0]
            made = self._made(event)
            if made is None:
                pass
            elif self._ready_bytes + len(made) > self._max_bytes:
                self._drop("queueFull", 1)
            else:
                self._ready.append(Ready(order, event_id, at, made))
                self._ready_bytes += len(made)
            self._incoming.popleft()

    def _made(self, event: Make | bytes) -> bytes | None:
        if isinstance(event, bytes):
            return event
        try:
            return event()
        except Exception as error:
            self._notices.once("develop", "an event could not be built: %r", error)
            self._drop("unsendable", 1)
            return None

    def _gather(self, now: float) -> float | None:
        """Fill the batch if it is due: full, old enough, or asked for by `flush`."""
        if not self._ready:
            self._take_left(now)
        if not self._ready:
            return None
        first = self._ready[0]
        due = (
            len(self._ready) >= BATCH_EVENTS
            or self._ready_bytes >= MAX_BODY_BYTES
            or first.order <= self._flush_to
            or now - first.at >= self._interval
        )
        if not due:
            return max(0.001, first.at + self._interval - now)
        size = 0
        while self._ready and (
            not self._batch or has_room(len(self._batch), size, len(self._ready[0].event))
        ):
            ready = self._ready.popleft()
            self._ready_bytes -= len(ready.event)
            size += len(ready.event)
            self._batch.append(ready)
        self._patience = Patience()
        return 0.0

    def _take_left(self, now: float) -> None:
        if self._spool is None:
            return
        for event_id, event in self._spool.take(BATCH_EVENTS):
            self._ready.append(Ready(0, event_id, now - self._interval, event))
            self._ready_bytes += len(event)

    def _settle(self, answer: Answer) -> None:
        verdict = self._patience.after(answer)
        self._not_before = self._clock.now() + verdict.wait if verdict.wait else 0.0
        if verdict.fate is Fate.AGAIN:
            self._counts["retries"] += 1
            return
        batch, self._batch = self._batch, []
        if verdict.fate is Fate.DONE:
            self._counts["sent"] += answer.accepted
            self._rejected(batch, answer)
        elif verdict.fate is Fate.REFUSED:
            self._drop("refused", len(batch))
            self._notices.once(
                f"status {answer.status}", "the server refused a batch: %s %s", answer.status, answer.why
            )
        else:
            self._drop("givenUp", len(batch))
            why = answer.why or f"status {answer.status}"
            self._notices.once("givenUp", "events are lost: the server cannot be reached (%s)", why)
        if self._spool is not None and verdict.fate is not Fate.GIVEN_UP:
            self._spool.remove(ready.id for ready in batch)

    def _rejected(self, batch: Sequence[Ready], answer: Answer) -> None:
        if not answer.errors:
            return
        self._counts["rejected"] += len(batch) - answer.accepted
        told = [{"id": batch[error["index"]].id, **error} for error in answer.errors]
        self._notices.once("rejected", "the server rejected events, the first of them: %s", told[0])
        if self._on_rejected is not None:
            try:
                self._on_rejected(told)
            except Exception as error:
                self._notices.once("on_rejected", "on_rejected raised %r", error)

    def _drop(self, reason: str, events: int) -> None:
        self._counts[f"dropped.{reason}"] += events
        if reason == "queueFull":
            self._notices.once("queueFull", "events are dropped: the queue is full")

    def _mark(self) -> None:
        """Tell those who wait in `flush` up to where everything has met its fate."""
        with self._lock:
            oldest = [line[0].order for line in (self._batch, self._ready, self._incoming) if line]
            done_to = min(oldest) - 1 if oldest else self._order
        with self._settled:
            self._done_to = done_to
            self._settled.notify_all()

    def flush(self, timeout: float) -> bool:
        """Send what was submitted before this call; true if all of it has met its fate within `timeout` seconds."""
        with self._lock:
            target = self._flush_to = self._order
        if self._done_to >= target:
            return True
        if not self._start():
            return self._flush_here(target, timeout)
        self._wake.put(None)
        with self._settled:
            return self._settled.wait_for(lambda: self._done_to >= target, timeout)

    def _flush_here(self, target: int, timeout: float) -> bool:
        """The same without a thread, in the caller's."""
        end = self._clock.now() + timeout
        while self._done_to < target and (left := end - self._clock.now()) > 0:
            wait = self._careful_step(timeout=left)
            if wait:
                self._clock.sleep(max(0.0, min(wait, end - self._clock.now())))
        return self._done_to >= target

    def close(self, timeout: float) -> bool:
        """`flush`, then end. What is left is counted as dropped; with a queue on disk the next start sends it."""
        end = self._clock.now() + timeout
        done = self.flush(timeout)
        with self._lock:
            if not self._closed and not done:
                self._drop("closed", len(self._incoming) + len(self._ready) + len(self._batch))
            self._closed = True
        self._wake.put(None)
        thread = self._thread
        if thread is None or not thread.is_alive():
            self._uploader.close()
        elif thread is not threading.current_thread():
            thread.join(max(0.0, min(0.2, end - self._clock.now())))
        return done

    def renew(self) -> None:
        """In a forked child: nothing of the parent's is ours, neither its events nor its thread, locks and connection."""
        self._clear()
        self._uploader.forget()
        if self._spool is not None:
            self._spool.forget()
