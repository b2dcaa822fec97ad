"""Shares the event loop and one worker thread fairly between tokens.

Between time slices the loop serves everything that is ready. Processing several batches in one go would delay
chunks and acknowledgements in each iteration of the loop. The queue is fair by token
(`edge.limits.fair_queue`): only the token that sends expensive bodies waits for them
(docs/decisions/edge.md).
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Final, ParamSpec, Self, TypeVar

from edge.limits.fair_queue import FairQueue, Usage, Usages

LARGE: Final = 16
SMALL: Final = 1
"""Weight of a time slice: for a batch, and for a body that takes less time than an iteration of the loop."""
ROUND_WEIGHT: Final = 2 * LARGE
"""The weight admitted in each iteration of the loop. One batch would delay less, but chunks would be sent
half empty under full load."""
MAX_OPEN: Final = 4
"""Large bodies of one token that may be inflated at a time: each takes a few megabytes until it is validated."""
_SLICE_SECONDS: Final = 0.004
"""Length of a time slice."""
_SHORT_SLICE_SECONDS: Final = 0.001
"""The same for a heavy token."""
_HEAVY_SECONDS: Final = 0.25
_EXPECTED_SECONDS: Final = 0.0001
"""Estimated cost of a time slice of weight 1."""
_MIN_PAUSE_FACTOR: Final = 3.0
"""While others send too, a token may not enter the thread for this many times as long as it used it: the
thread competes for the GIL."""
_PAUSE_FACTOR_PER_USED_SECOND: Final = 1500.0
"""The factor for each second of recent use: a heavy token gets about a fiftieth of the thread."""
_MAX_PAUSE_SECONDS: Final = 1.0

P = ParamSpec("P")
T = TypeVar("T")


class FairScheduler:
    """Admits a fixed weight in each iteration of the loop; one thread does long work that can't be interrupted."""

    def __init__(self) -> None:
        self._usages = Usages(MAX_OPEN)
        self._queue = FairQueue()
        self._remaining = ROUND_WEIGHT
        self._thread = ThreadPoolExecutor(1, "large-bodies")
        self._thread_queue = FairQueue(skip_blocked=True)
        self._thread_free = True
        self._thread_timer: asyncio.TimerHandle | None = None

    def shut_down(self) -> None:
        self._thread.shutdown(wait=False)

    def time_slice(self, token: str) -> "TimeSlice":
        """The time slices of one request, as a context manager that records their use."""
        return TimeSlice(self, self._usages.of(token, time.perf_counter()))

    async def admit(self, usage: Usage, weight: int) -> None:
        """Return when the request may use the loop, until it next awaits."""
        if self._remaining > 0 and not self._queue:
            self._start_slice(usage, weight)
            return
        await self._queue.join(usage, weight)

    def is_heavy(self, usage: Usage, now: float) -> bool:
        """Whether a token has used much time recently while others send too."""
        return usage.seconds(now) > _HEAVY_SECONDS and self._usages.has_others(usage, now)

    async def run_in_thread(self, usage: Usage, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Run `work` in the thread, once the token may use it."""
        await self._enter_thread(usage)
        started = time.perf_counter()
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._thread, lambda: work(*args, **named)
            )
        finally:
            now = time.perf_counter()
            usage.add_seconds(now - started, now)
            if self._usages.has_others(usage, now):
                factor = max(_MIN_PAUSE_FACTOR, _PAUSE_FACTOR_PER_USED_SECOND * usage.seconds(now))
                usage.blocked_until = now + min(factor * (now - started), _MAX_PAUSE_SECONDS)
            self._leave_thread()

    async def _enter_thread(self, usage: Usage) -> None:
        if self._thread_free and usage.blocked_until <= time.perf_counter():
            self._thread_free = False
            return
        admitted = self._thread_queue.join(usage)
        if self._thread_free:
            self._schedule_admission()
        try:
            await admitted
        except asyncio.CancelledError:
            # Admitted and cancelled in the same iteration: admit the next waiter.
            if admitted.done() and not admitted.cancelled():
                self._leave_thread()
            raise

    def _leave_thread(self) -> None:
        waiter = self._thread_queue.next()
        self._thread_free = waiter is None
        if waiter is None:
            self._schedule_admission()
        else:
            waiter.admitted.set_result(None)

    def _schedule_admission(self) -> None:
        if self._thread_timer is not None:
            self._thread_timer.cancel()
        ready_at = self._thread_queue.next_ready_at()
        if ready_at is not None:
            wait = max(0.0, ready_at - time.perf_counter())
            self._thread_timer = asyncio.get_running_loop().call_later(wait, self._admit_to_thread)

    def _admit_to_thread(self) -> None:
        if self._thread_free:
            self._leave_thread()

    def _start_slice(self, usage: Usage, weight: int) -> None:
        if self._remaining == ROUND_WEIGHT:
            asyncio.get_running_loop().call_soon(self._next_round)
        now = time.perf_counter()
        self._remaining -= ROUND_WEIGHT if self.is_heavy(usage, now) else weight
        usage.add_seconds(weight * _EXPECTED_SECONDS, now)

    def _next_round(self) -> None:
        self._remaining = ROUND_WEIGHT
        # A waiter that is cancelled after this loses its slice; the next round starts all the same.
        while self._remaining > 0 and (waiter := self._queue.next()) is not None:
            self._start_slice(waiter.usage, waiter.weight)
            waiter.admitted.set_result(None)


class TimeSlice:
    """The time slices of one request."""

    __slots__ = ("_end", "_expected", "_opened", "_scheduler", "_started", "_usage", "_weight")

    def __init__(self, scheduler: FairScheduler, usage: Usage) -> None:
        self._scheduler = scheduler
        self._usage = usage
        self._weight = 0
        self._started = self._end = self._expected = 0.0
        self._opened = False

    async def begin(self, weight: int) -> None:
        """Wait for the first slice; a token may have only a few large bodies open at a time."""
        self._record()
        self._weight = weight
        if weight == LARGE:
            await self._usage.open.acquire()
            self._opened = True
        await self._admit()

    @property
    def over(self) -> bool:
        return time.perf_counter() > self._end

    async def pause(self) -> None:
        """Yield to others; return in the next slice."""
        self._record()
        await self._admit()

    async def run_in_thread(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Run `work` in the worker thread, then start another slice."""
        self._record()
        try:
            return await self._scheduler.run_in_thread(self._usage, work, *args, **named)
        finally:
            self._start()

    async def _admit(self) -> None:
        await self._scheduler.admit(self._usage, self._weight)
        self._expected = self._weight * _EXPECTED_SECONDS
        self._start()

    def _start(self) -> None:
        self._started = now = time.perf_counter()
        heavy = self._scheduler.is_heavy(self._usage, now)
        self._end = now + (_SHORT_SLICE_SECONDS if heavy else _SLICE_SECONDS)

    def _record(self) -> None:
        if self._started:
            now = time.perf_counter()
            self._usage.add_seconds(now - self._started - self._expected, now)
            self._started = self._expected = 0.0

    def __enter__(self) -> Self:
        self._usage.requests += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._record()
        self._usage.requests -= 1
        if self._opened:
            self._usage.open.release()
