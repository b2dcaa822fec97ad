"""Turns for what works long: between such stretches the loop serves everything else that is ready.

When several batches have come at once, as after a moment without the processor, working them off in one go would keep chunks
from leaving and acknowledgements from being read, each time round the loop again. Turns go round fairly by token
(`edge.limits.fair_queue`): who sends what is dear to read waits for itself (docs/decisions/edge-fairness.md).
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
"""What a turn weighs: a batch, and a body that is worked off in less time than a round takes."""
A_ROUND: Final = 2 * LARGE
"""What is given out each time round the loop. With one batch, delays are shorter still, but chunks leave half empty under full load."""
MOST_OPEN: Final = 4
"""Large bodies of one token that are inflated at a time: each takes a few megabytes until it is admitted."""
_SLICE_SECONDS: Final = 0.004
"""Longest that a batch works at a stretch."""
_SHORT_SLICE_SECONDS: Final = 0.001
"""The same for a token that uses much while others send too."""
_MUCH_SECONDS: Final = 0.25
_EXPECTED_SECONDS: Final = 0.0001
"""What a turn of weight 1 costs as long as it isn't known."""
_MIN_REST: Final = 3.0
"""While others send too, a token rests so many times as long as it has worked in the thread for large bodies, which shares the interpreter."""
_REST_OF_USED: Final = 1500.0
"""The same for each second that it has used lately: who uses much gets about a fiftieth of the thread."""
_LONGEST_REST_SECONDS: Final = 1.0

P = ParamSpec("P")
T = TypeVar("T")


class FairScheduler:
    """So much a round, and one thread beside the loop for what is long and can't be interrupted."""

    def __init__(self) -> None:
        self._usages = Usages(MOST_OPEN)
        self._queue = FairQueue()
        self._left = A_ROUND
        self._lane_queue = FairQueue(rests=True)
        self._lane_free = True
        self._lane_timer: asyncio.TimerHandle | None = None
        self._lane = ThreadPoolExecutor(1, "large-bodies")

    def close(self) -> None:
        """Let go of the thread."""
        self._lane.shutdown(wait=False)

    def time_slice(self, token: str) -> "TimeSlice":
        """For one request of a token; used in a `with`, at whose end what it has used is known."""
        return TimeSlice(self, self._usages.of(token, time.perf_counter()))

    async def mine(self, usage: Usage, weight: int) -> None:
        """Return when it is the turn of a token, which lasts until it waits for anything."""
        if self._left > 0 and not self._queue:
            self._start_slice(usage, weight)
            return
        await self._queue.join(usage, weight)

    def greedy(self, usage: Usage, now: float) -> bool:
        """Whether a token has used much lately while others send too."""
        return usage.seconds(now) > _MUCH_SECONDS and self._usages.has_others(usage, now)

    async def elsewhere(self, usage: Usage, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Do work in the thread, when it is the turn of a token there."""
        await self._enter_lane(usage)
        began = time.perf_counter()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._lane, lambda: work(*args, **named))
        finally:
            now = time.perf_counter()
            usage.add(now - began, now)
            if self._usages.has_others(usage, now):
                times = max(_MIN_REST, _REST_OF_USED * usage.seconds(now))
                usage.rests_until = now + min(times * (now - began), _LONGEST_REST_SECONDS)
            self._leave_lane()

    async def _enter_lane(self, usage: Usage) -> None:
        if self._lane_free and usage.rests_until <= time.perf_counter():
            self._lane_free = False
            return
        place = self._lane_queue.join(usage)
        if self._lane_free:
            self._wake_lane_later()
        try:
            await place
        except asyncio.CancelledError:
            # Given and gone at once: the next one's.
            if place.done() and not place.cancelled():
                self._leave_lane()
            raise

    def _leave_lane(self) -> None:
        first = self._lane_queue.next()
        self._lane_free = first is None
        if first is None:
            self._wake_lane_later()
        else:
            first.time_slice.set_result(None)

    def _wake_lane_later(self) -> None:
        if self._lane_timer is not None:
            self._lane_timer.cancel()
        rested_at = self._lane_queue.rested_at()
        if rested_at is not None:
            wait = max(0.0, rested_at - time.perf_counter())
            self._lane_timer = asyncio.get_running_loop().call_later(wait, self._wake_lane)

    def _wake_lane(self) -> None:
        if self._lane_free:
            self._leave_lane()

    def _start_slice(self, usage: Usage, weight: int) -> None:
        if self._left == A_ROUND:
            asyncio.get_running_loop().call_soon(self._next_round)
        now = time.perf_counter()
        self._left -= A_ROUND if self.greedy(usage, now) else weight
        usage.add(weight * _EXPECTED_SECONDS, now)

    def _next_round(self) -> None:
        self._left = A_ROUND
        # One that goes away now loses its turn, and the next round comes all the same.
        while self._left > 0 and (first := self._queue.next()) is not None:
            self._start_slice(first.usage, first.weight)
            first.time_slice.set_result(None)


class TimeSlice:
    """What one request does in its token's turns."""

    __slots__ = ("_began", "_end", "_expected", "_opened", "_scheduler", "_usage", "_weight")

    def __init__(self, scheduler: FairScheduler, usage: Usage) -> None:
        self._scheduler = scheduler
        self._usage = usage
        self._weight = 0
        self._began = self._end = self._expected = 0.0
        self._opened = False

    async def begin(self, weight: int) -> None:
        """Wait for the first turn; of large bodies a token has only a few open at a time."""
        self._count()
        self._weight = weight
        if weight == LARGE:
            await self._usage.open.acquire()
            self._opened = True
        await self._mine()

    @property
    def over(self) -> bool:
        """Whether it has been long enough."""
        return time.perf_counter() > self._end

    async def pause(self) -> None:
        """Let others go first."""
        self._count()
        await self._mine()

    async def elsewhere(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Do work beside the loop; the turn goes on after it."""
        self._count()
        try:
            return await self._scheduler.elsewhere(self._usage, work, *args, **named)
        finally:
            self._start()

    async def _mine(self) -> None:
        await self._scheduler.mine(self._usage, self._weight)
        self._expected = self._weight * _EXPECTED_SECONDS
        self._start()

    def _start(self) -> None:
        self._began = now = time.perf_counter()
        short = self._scheduler.greedy(self._usage, now)
        self._end = now + (_SHORT_SLICE_SECONDS if short else _SLICE_SECONDS)

    def _count(self) -> None:
        if self._began:
            now = time.perf_counter()
            self._usage.add(now - self._began - self._expected, now)
            self._began = self._expected = 0.0

    def __enter__(self) -> Self:
        self._usage.requests += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._count()
        self._usage.requests -= 1
        if self._opened:
            self._usage.open.release()
