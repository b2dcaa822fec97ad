"""The queue of events and what is due to be done with it: a pure machine around a clock and a poster.

The application's side (`submit`) takes one lock that its own thread may take again, and never waits for the network, the
disk or the sending side (`step`), which one thread at a time calls.
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
"""Develops an event into JSON; None where nothing is to be sent after all."""


class Poster(Protocol):
    """What is used of `Uploader`."""

    def post(self, events: Sequence[bytes], timeout: float | None = None) -> Answer: ...  # noqa: D102
    def close(self) -> None: ...  # noqa: D102
    def after_fork(self) -> None: ...  # noqa: D102


class QueuedEvent(NamedTuple):
    """An event on its way: its place in the order, its id, when it came, and how to get its JSON."""

    order: int
    id: str
    at: float
    event: BuildEvent | bytes


class EncodedEvent(NamedTuple):
    """An event in its final form."""

    order: int
    id: str
    at: float
    event: bytes


class Pipeline:
    """Events in, batches out. `now` gives monotonic seconds.

    `submitted` numbers the last event taken; all up to `settled_to` have met their fate; all up to `flush_to` are sent
    without waiting for company.
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
        """Events whose fate is open."""
        return len(self._incoming) + len(self._ready) + len(self._batch)

    def submit(self, event_id: str, event: BuildEvent | bytes) -> bool:
        """Queue an event; false where the queue is full, which is counted."""
        with self._lock:
            taken = len(self) < self._max_events
            if taken:
                self.submitted += 1
                self._incoming.append(QueuedEvent(self.submitted, event_id, self._now(), event))
        # Outside the lock: logging takes locks of its own, under which somebody may be capturing.
        if not taken:
            self._outcomes.drop("queueFull", 1)
        return taken

    def step(self, timeout: float | None = None) -> float | None:
        """Do what is due: develop events, gather a batch, post it. Seconds until something is due; None: nothing waits.

        `timeout` bounds the time on the network.
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
        """`step` failed with `error`: rather than failing again, lose the batch."""
        self._outcomes.fault("fault", error, len(self._batch))
        self._batch = []
        self._update_settled()

    def _encode_queued(self) -> None:
        while self._incoming:
            order, event_id, at, event = self._incoming[0]
            try:
                made = self._encode(event)
                if made is not None and self._ready_bytes + len(made) > self._max_bytes:
                    self._outcomes.drop("queueFull", 1)
                elif made is not None:
                    self._ready.append(EncodedEvent(order, event_id, at, made))
                    self._ready_bytes += len(made)
            finally:  # also where the application's part of it ends this thread: the next one must not meet it again
                self._incoming.popleft()

    def _encode(self, event: BuildEvent | bytes) -> bytes | None:
        if isinstance(event, bytes):
            return event
        try:
            return event()
        except Exception as error:
            self._outcomes.fault("unsendable", error, 1)
            return None

    def _gather(self, now: float) -> float | None:
        """Fill the batch if it is due: full, old enough, or hurried."""
        if not self._ready:
            self._queue_leftovers(now)
        if not self._ready:
            return None
        first = self._ready[0]
        due = (
            len(self._ready) >= BATCH_EVENTS
            or self._ready_bytes >= MAX_BODY_BYTES
            or first.order <= self.flush_to
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
        self._retry_policy = RetryPolicy()
        return 0.0

    def _queue_leftovers(self, now: float) -> None:
        """What an earlier run left on disk goes when nothing newer waits."""
        if self._spool is None:
            return
        for event_id, event in self._spool.take_leftovers(BATCH_EVENTS):
            self._ready.append(EncodedEvent(0, event_id, now - self._interval, event))
            self._ready_bytes += len(event)

    def _settle(self, answer: Answer) -> None:
        verdict = self._retry_policy.after(answer)
        self._not_before = self._now() + verdict.wait if verdict.wait else 0.0
        if verdict.fate is Fate.AGAIN:
            self._outcomes.again()
            return
        batch, self._batch = self._batch, []
        self._outcomes.settle(verdict.fate, answer, [ready.id for ready in batch])

    def _update_settled(self) -> None:
        with self._lock:
            oldest = [line[0].order for line in (self._batch, self._ready, self._incoming) if line]
            self.settled_to = min(oldest) - 1 if oldest else self.submitted
