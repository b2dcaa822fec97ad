"""One answer for equal calls: those that come together wait for one question, and for a moment the next ones get it, too.

Fifty open dashboards cost as much as one. A change that this process makes ends every kept answer and every one that is on its
way, so whoever changes something never sees what was before.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Final

from msgspec import Struct

from dashboard.http.responses import Tagged

MAX_BYTES: Final = 32 * 1024 * 1024
MAX_ENTRIES: Final = 1_000
Make = Callable[[], Awaitable[Tagged]]


class _CachedAnswer(Struct, frozen=True):
    answer: Tagged
    until: float


class ResponseCache:
    """Answers by what was asked and by whom; `seconds` is how long one is given to others. One event loop owns it."""

    def __init__(
        self,
        seconds: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        max_bytes: int = MAX_BYTES,
        max_entries: int = MAX_ENTRIES,
    ) -> None:
        self._seconds = seconds
        self._clock = clock
        self._max_bytes = max_bytes
        self._max_entries = max_entries
        self._kept: OrderedDict[Hashable, _CachedAnswer] = OrderedDict()
        self._bytes = 0
        self._coming: dict[Hashable, asyncio.Future[Tagged]] = {}

    @property
    def size(self) -> int:
        """Bytes of the answers that are kept."""
        return self._bytes

    def kept(self, key: Hashable) -> Tagged | None:
        """A fresh answer to the same call."""
        found = self._kept.get(key)
        return found.answer if found is not None and self._clock() < found.until else None

    def is_pending(self, key: Hashable) -> bool:
        """Whether the same is being asked."""
        return key in self._coming

    async def answer(self, key: Hashable, make: Make, *, refresh: bool = False) -> Tagged:
        """The kept answer, or the one that is on its way, or (always where `refresh`) a new one.

        Raises what `make` raises; errors are not kept.
        """
        if not self._seconds:
            return await make()
        if refresh:
            self._drop(key)
            self._coming.pop(key, None)
        found = self.kept(key)
        if found is not None:
            return found
        coming = self._coming.get(key)
        if coming is None:
            coming = asyncio.ensure_future(make())
            self._coming[key] = coming
            coming.add_done_callback(lambda done: self._arrived(key, done))
        # Who goes away doesn't take the answer from the others.
        return await asyncio.shield(coming)

    def forget(self) -> None:
        """Give nobody an answer that was asked for before now."""
        self._kept.clear()
        self._bytes = 0
        self._coming.clear()

    def _arrived(self, key: Hashable, done: asyncio.Future[Tagged]) -> None:
        failed = done.cancelled() or done.exception() is not None
        if self._coming.get(key) is not done:
            return
        del self._coming[key]
        if not failed:
            self._keep(key, done.result())

    def _keep(self, key: Hashable, answer: Tagged) -> None:
        self._drop(key)
        self._kept[key] = _CachedAnswer(answer, self._clock() + self._seconds)
        self._bytes += len(answer.body)
        while self._kept and (
            self._bytes > self._max_bytes or len(self._kept) > self._max_entries or self._is_stale()
        ):
            self._drop(next(iter(self._kept)))

    def _is_stale(self) -> bool:
        return next(iter(self._kept.values())).until <= self._clock()

    def _drop(self, key: Hashable) -> None:
        old = self._kept.pop(key, None)
        self._bytes -= len(old.answer.body) if old is not None else 0
