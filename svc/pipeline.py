"""The event queue as a state machine without threads: clock and poster are injected.

The application calls `submit`, which takes one reentrant lock and never waits for the network, the disk or the sender.
One thread at a time calls `step`, the sender.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from svc.answers import Answer, Fate, RetryPolicy
from svc.batches import has_room
from svc.limits import BATCH_EVENTS, MAX_BODY_BYTES
from svc.outcomes import Outcomes
from svc.spool import EventSpool

BuildEvent = Callable[[], bytes | None]
"""Builds an event's JSON; None if nothing is to be sent."""


class Poster(Protocol):
    """The used part of `Uploader`."""

    url: str

    def post(self, events: Sequence[bytes], timeout: float | None = None) -> Answer: ...
    def close(self) -> None: ...
    def after_fork(self) -> None: ...


class QueuedEvent(NamedTuple):
    """A submitted event: sequence number, id, submission time, and its JSON or the function that builds it."""

    order: int
    id: str
    at: float
    event: BuildEvent | bytes


class EncodedEvent(NamedTuple):
    """An event as JSON."""

    order: int
    id: str
    at: float
    event: bytes


class Pipeline:
    """Collects events into batches and posts them. `now` returns monotonic seconds.

    `submitted` is the number of the last accepted event. The outcome of all events up to `settled_to` is known. Events
    up to `flush_to` are sent without waiting for a full batch.
    """

    def __init__(
        self,
        poster: Poster,
        outcomes: Outcomes,
        now: Callable[[], float],
        spool: EventSpool | None,
        max_events: int,
        max_bytes: int,
        interval: float,
    ) -> None:
        self._poster = poster
        self._outcomes = outcomes
        self._now = now
        self._spool = spool
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._interval = interval
        self._lock = threading.RLock()
        self._stepping = threading.Lock()
        self._incoming: deque[QueuedEvent] = deque()
        self._ready: deque[EncodedEvent] = deque()
        self._ready_bytes = 0
        self._batch: list[EncodedEvent] = []
        self._retry_policy = RetryPolicy()
        self._not_before = 0.0
        self.submitted = 0
        self.settled_to = 0
        self.flush_to = 0

    def __len__(self) -> int:
        """The number of events without an outcome."""
        return len(self._incoming) + len(self._ready) + len(self._batch)

    def submit(self, event_id: str, event: BuildEvent | bytes) -> bool:
        """Queue an event; false (and counted) if the queue is full."""
        with self._lock:
            accepted = len(self) < self._max_events
            if accepted:
                self.submitted += 1
                self._incoming.append(QueuedEvent(self.submitted, event_id, self._now(), event))
        # Outside the lock: logging takes locks too, and their holder may be capturing.
        if not accepted:
            self._outcomes.drop("queueFull", 1)
        return accepted

    def step(self, timeout: float | None = None) -> float | None:
        """Encode events, fill a batch and post it; returns seconds until the next step, or None if the queue is empty.

        `timeout` limits the time on the network.
        """
        with self._stepping:
            self._encode_queued()
            now = self._now()
            if now < self._not_before:
                return self._not_before - now
            if not self._batch:
                wait = self._gather(now)
                if not self._batch:
                    self._update_settled()
                    return wait
            self._settle(self._poster.post([ready.event for ready in self._batch], timeout))
            self._update_settled()
            return 0.0

    def give_up(self, error: Exception) -> None:
        """Drop the batch after `step` failed with `error`, so that it doesn't fail repeatedly."""
        self._outcomes.fail("fault", error, len(self._batch))
        self._batch = []
        self._update_settled()

    def _encode_queued(self) -> None:
        while self._incoming:
            order, event_id, at, event = self._incoming[0]
            try:
                encoded = self._encode(event)
                if encoded is not None and self._ready_bytes + len(encoded) > self._max_bytes:
                    self._outcomes.drop("queueFull", 1)
                elif encoded is not None:
                    self._ready.append(EncodedEvent(order, event_id, at, encoded))
                    self._ready_bytes += len(encoded)
            finally:  # also if the application's callback ends this thread: the next one must not process it again
                self._incoming.popleft()

    def _encode(self, event: BuildEvent | bytes) -> bytes | None:
        if isinstance(event, bytes):
            return event
        try:
            return event()
        except Exception as error:
            self._outcomes.fail("unsendable", error, 1)
            return None

    def _gather(self, now: float) -> float | None:
        """Fill the batch if enough events are queued, the oldest waited long enough, or a flush was requested."""
        if not self._ready:
            self._queue_leftovers(now)
        if not self._ready:
            return None
        first = self._ready[0]
        ready_to_send = (
            len(self._ready) >= BATCH_EVENTS
            or self._ready_bytes >= MAX_BODY_BYTES
            or first.order <= self.flush_to
            or now - first.at >= self._interval
        )
        if not ready_to_send:
            return max(0.001, first.at + self._interval - now)
        size = 0
        while self._ready and (
            not self._batch or has_room(len(self._batch), size, len(self._ready[0].event))
        ):
            ready = self._ready.popleft()
            self._ready_bytes -= len(ready.event)
            size += len(ready.event)
            self._batch.append(ready)
        self._retry_policy = RetryPolicy()
        return 0.0

    def _queue_leftovers(self, now: float) -> None:
        """Queue events that an earlier run left on disk; called when no newer ones wait."""
        if self._spool is None:
            return
        for event_id, event in self._spool.take_leftovers(BATCH_EVENTS):
            self._ready.append(EncodedEvent(0, event_id, now - self._interval, event))
            self._ready_bytes += len(event)

    def _settle(self, answer: Answer) -> None:
        decision = self._retry_policy.after(answer)
        self._not_before = self._now() + decision.wait if decision.wait else 0.0
        if decision.fate is Fate.AGAIN:
            self._outcomes.retry(answer)
            return
        batch, self._batch = self._batch, []
        self._outcomes.settle(decision.fate, answer, [ready.id for ready in batch])

    def _update_settled(self) -> None:
        with self._lock:
            oldest = [events[0].order for events in (self._batch, self._ready, self._incoming) if events]
            self.settled_to = min(oldest) - 1 if oldest else self.submitted
