"""The background sender thread, and `flush`, `close` and fork handling."""

import queue
import threading
import time
from collections import Counter
from typing import Protocol

from svc.notices import Notices
from svc.outcomes import OnRejected, Outcomes
from svc.pipeline import BuildEvent, Pipeline, Poster
from svc.spool import EventSpool


class Clock(Protocol):
    """Monotonic time and sleep."""

    def now(self) -> float: ...
    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The system's clock."""

    now = staticmethod(time.monotonic)
    sleep = staticmethod(time.sleep)


class Transport:
    """A pipeline and the thread that runs it, started by the first event. Thread-safe."""

    def __init__(
        self,
        uploader: Poster,
        counts: Counter[str],
        notices: Notices,
        *,
        clock: Clock | None = None,
        spool: EventSpool | None = None,
        on_rejected: OnRejected | None = None,
        max_events: int = 1_000,
        max_bytes: int = 16 * 1_048_576,
        interval: float = 1.0,
    ) -> None:
        self._uploader = uploader
        self._clock = clock or SystemClock()
        self._spool = spool
        self._outcomes = Outcomes(counts, notices, uploader.url, spool, on_rejected)
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._interval = interval
        self._clear()

    def _clear(self) -> None:
        self._pipeline = Pipeline(
            self._uploader,
            self._outcomes,
            self._clock.now,
            self._spool,
            self._max_events,
            self._max_bytes,
            self._interval,
        )
        self._lock = threading.RLock()
        self._settled = threading.Condition()
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(self, event_id: str, event: BuildEvent | bytes) -> bool:
        """Queue an event; false (and counted) if the queue is full or closed."""
        if self._closed:
            self._outcomes.drop("closed", 1)
            return False
        accepted = self._pipeline.submit(event_id, event)
        if accepted:
            self.wake()
        return accepted

    def wake(self) -> None:
        """Wake the background thread, or start it."""
        if self._wake.empty():
            self._wake.put(None)
        if self._thread is None or not self._thread.is_alive():
            self._start()

    def step(self, timeout: float | None = None) -> float | None:
        """Run one step of the pipeline and notify waiting `flush` calls. An internal error costs a batch."""
        try:
            wait = self._pipeline.step(timeout)
        except Exception as error:
            self._pipeline.give_up(error)
            wait = 1.0
        with self._settled:
            self._settled.notify_all()
        return wait

    def _start(self) -> bool:
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return True
            thread = threading.Thread(target=self._run, name="svc-reporting", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # at interpreter shutdown or out of threads: `flush` does the work
                return False
            self._thread = thread
            return True

    def _run(self) -> None:
        while not self._closed:
            wait = self.step()
            if wait is None or wait > 0:
                try:
                    self._wake.get(timeout=wait)
                except queue.Empty:
                    continue
        self._uploader.close()

    def flush(self, timeout: float) -> bool:
        """Send all events submitted so far; true if their outcome is known within `timeout` seconds."""
        pipeline = self._pipeline
        target = pipeline.flush_to = pipeline.submitted
        if pipeline.settled_to >= target:
            return True
        if not self._start():
            return self._flush_here(target, timeout)
        self._wake.put(None)
        with self._settled:
            return self._settled.wait_for(lambda: pipeline.settled_to >= target, timeout)

    def _flush_here(self, target: int, timeout: float) -> bool:
        end = self._clock.now() + timeout
        while self._pipeline.settled_to < target and (left := end - self._clock.now()) > 0:
            wait = self.step(timeout=left)
            if wait:
                self._clock.sleep(max(0.0, min(wait, end - self._clock.now())))
        return self._pipeline.settled_to >= target

    def close(self, timeout: float) -> bool:
        """`flush`, then stop. Remaining events count as dropped; with a queue on disk the next start sends them."""
        end = self._clock.now() + timeout
        done = self.flush(timeout)
        with self._lock:
            left = 0 if done or self._closed else len(self._pipeline)
            self._closed = True
        if left:
            self._outcomes.abandon(left)
        self._wake.put(None)
        thread = self._thread
        if thread is None or not thread.is_alive():
            self._uploader.close()
        elif thread is not threading.current_thread():
            thread.join(max(0.0, min(0.2, end - self._clock.now())))
        return done

    def after_fork(self) -> None:
        """In a forked child: discard the parent's events, thread, locks and connection."""
        self._uploader.after_fork()
        if self._spool is not None:
            self._spool.after_fork()
        self._clear()
