"""Fair queueing by token: the next waiter is of the token with the least recent processor time."""

import asyncio
import math
import time
from collections import deque
from typing import NamedTuple

_DECAY_SECONDS = 2.0
"""Recorded use decays exponentially: to about a third after this time."""
_IDLE_SECONDS = 30.0
_MAX_IDLE = 1000


class Usage:
    """The decayed processor time of one token in seconds, and the number of its current `requests`.

    Until `blocked_until` the token may not use the thread for large bodies.
    """

    def __init__(self, max_open: int) -> None:
        self.open = asyncio.Semaphore(max_open)
        self.requests = 0
        self.blocked_until = 0.0
        self._seconds = 0.0
        self._at = 0.0

    def seconds(self, now: float) -> float:
        """The use, decayed until now."""
        return self._seconds * math.exp((self._at - now) / _DECAY_SECONDS)

    def add_seconds(self, seconds: float, now: float) -> None:
        """Record use; negative if less was used than estimated."""
        self._seconds = max(0.0, self.seconds(now) + seconds)
        self._at = now

    def idle(self, now: float) -> bool:
        """Whether it can be dropped."""
        return not self.requests and now - self._at > _IDLE_SECONDS


class Usages:
    """The use of all recently active tokens."""

    def __init__(self, max_open: int) -> None:
        self._max_open = max_open
        self._by_token: dict[str, Usage] = {}
        self._last: Usage | None = None
        self._last_at = self._other_at = -math.inf

    def of(self, token: str, now: float) -> Usage:
        """The usage of a token; the token counts as active now."""
        usage = self._by_token.get(token)
        if usage is None:
            if len(self._by_token) >= _MAX_IDLE:
                self._by_token = {name: use for name, use in self._by_token.items() if not use.idle(now)}
            usage = self._by_token[token] = Usage(self._max_open)
        if usage is not self._last:
            self._last, self._other_at = usage, self._last_at
        self._last_at = now
        return usage

    def has_others(self, usage: Usage, now: float) -> bool:
        """Whether another token was active within the last second."""
        return now - (self._other_at if usage is self._last else self._last_at) < 1.0


class Waiter(NamedTuple):
    """A queued request: its `admitted` future and its weight."""

    usage: Usage
    weight: int
    admitted: asyncio.Future[None]


class FairQueue:
    """Waiters by token; with `skip_blocked`, blocked tokens are skipped."""

    def __init__(self, *, skip_blocked: bool = False) -> None:
        self._skip_blocked = skip_blocked
        self._waiting: dict[Usage, deque[Waiter]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def join(self, usage: Usage, weight: int = 1) -> asyncio.Future[None]:
        """Enter the queue; the caller of `next` completes the future."""
        admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(usage, deque()).append(Waiter(usage, weight, admitted))
        return admitted

    def next(self) -> "Waiter | None":
        """Remove and return the first waiter of the token with the least use; None without waiters.

        Among tokens of equal use, it takes the one that has waited longer. It skips cancelled waiters.
        """
        now = time.perf_counter()
        while ready := [use for use in self._waiting if not self._skip_blocked or use.blocked_until <= now]:
            usage = min(ready, key=lambda use: use.seconds(now))
            waiters = self._waiting[usage]
            waiter = waiters.popleft()
            if not waiters:
                del self._waiting[usage]
            if not waiter.admitted.done():
                return waiter
        return None

    def next_ready_at(self) -> float | None:
        """When the first token with waiters is no longer blocked; None without waiters."""
        return min((usage.blocked_until for usage in self._waiting), default=None)
