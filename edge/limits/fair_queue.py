"""Fair queueing by token: of those who wait, the one goes first whose token has used the least processor time lately."""

import asyncio
import math
import time
from collections import deque
from typing import NamedTuple

_MEMORY_SECONDS = 2.0
"""Use counts less the longer ago it was: after so long a third."""
_IDLE_SECONDS = 30.0
_MOST_IDLE = 1000


class Usage:
    """The processor time that one token has used lately, in seconds; `requests` of it are being worked off.

    `rests_until` is when it may enter the thread for large bodies again.
    """

    def __init__(self, most_open: int) -> None:
        self.open = asyncio.Semaphore(most_open)
        self.requests = 0
        self.rests_until = 0.0
        self._seconds = 0.0
        self._at = 0.0

    def seconds(self, now: float) -> float:
        """What is left of the use until now."""
        return self._seconds * math.exp((self._at - now) / _MEMORY_SECONDS)

    def add(self, seconds: float, now: float) -> None:
        """Count more of it, or less where less was used than had been expected."""
        self._seconds = max(0.0, self.seconds(now) + seconds)
        self._at = now

    def idle(self, now: float) -> bool:
        """Whether nothing is lost by forgetting it."""
        return not self.requests and now - self._at > _IDLE_SECONDS


class Usages:
    """The use of all tokens that were heard of lately."""

    def __init__(self, most_open: int) -> None:
        self._most_open = most_open
        self._by_token: dict[str, Usage] = {}
        self._last: Usage | None = None
        self._last_at = self._other_at = -math.inf

    def of(self, token: str, now: float) -> Usage:
        """A token's use, which is known as long as it matters."""
        usage = self._by_token.get(token)
        if usage is None:
            if len(self._by_token) >= _MOST_IDLE:
                self._by_token = {name: each for name, each in self._by_token.items() if not each.idle(now)}
            usage = self._by_token[token] = Usage(self._most_open)
        if usage is not self._last:
            self._last, self._other_at = usage, self._last_at
        self._last_at = now
        return usage

    def has_others(self, usage: Usage, now: float) -> bool:
        """Whether another token was heard of within the last second."""
        return now - (self._other_at if usage is self._last else self._last_at) < 1.0


class Waiter(NamedTuple):
    """Someone who waits, and how much."""

    usage: Usage
    weight: int
    time_slice: asyncio.Future[None]


class FairQueue:
    """Those who wait, by token; with `rests` a token that rests is passed over."""

    def __init__(self, *, rests: bool = False) -> None:
        self._rests = rests
        self._waiting: dict[Usage, deque[Waiter]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def join(self, usage: Usage, weight: int = 1) -> asyncio.Future[None]:
        """A place in the queue; the future ends when whoever calls `next` says so."""
        time_slice: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(usage, deque()).append(Waiter(usage, weight, time_slice))
        return time_slice

    def next(self) -> "Waiter | None":
        """Who is first, taken out of the queue: of equal use the one that has waited longer. Whoever went away is passed over."""
        now = time.perf_counter()
        while ready := [each for each in self._waiting if not self._rests or each.rests_until <= now]:
            usage = min(ready, key=lambda each: each.seconds(now))
            places = self._waiting[usage]
            place = places.popleft()
            if not places:
                del self._waiting[usage]
            if not place.time_slice.done():
                return place
        return None

    def rested_at(self) -> float | None:
        """When the first of those who wait has rested; None where nobody waits."""
        return min((each.rests_until for each in self._waiting), default=None)
