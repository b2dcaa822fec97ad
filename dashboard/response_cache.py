"""A short-lived cache of responses: equal requests share one load, and for a moment its result.

Fifty open dashboards cost as much as one. A change made by this process clears the cache and detaches pending
loads, so whoever makes a change never reads the state before it.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Final

from msgspec import Struct

from dashboard.http.responses import TaggedBody

SHARE_SECONDS: Final = 1.0
"""How old a shared answer may be: people don't notice a second, and fifty open dashboards ask more often."""
MAX_BYTES: Final = 32 * 1024 * 1024
MAX_ENTRIES: Final = 1_000
Load = Callable[[], Awaitable[TaggedBody]]


class _Entry(Struct, frozen=True):
    answer: TaggedBody
    expires: float


class ResponseCache:
    """Responses by request and user, each for `seconds`. One event loop owns it."""

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
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._bytes = 0
        self._pending: dict[Hashable, asyncio.Future[TaggedBody]] = {}

    @property
    def size(self) -> int:
        """Bytes of the cached responses."""
        return self._bytes

    def cached(self, key: Hashable) -> TaggedBody | None:
        """The cached response, if it has not expired."""
        entry = self._entries.get(key)
        return entry.answer if entry is not None and self._clock() < entry.expires else None

    def is_pending(self, key: Hashable) -> bool:
        """Whether an equal request is being loaded."""
        return key in self._pending

    async def get_or_load(self, key: Hashable, load: Load, *, refresh: bool = False) -> TaggedBody:
        """The cached response, the result of a pending load, or (always with `refresh`) of a new one.

        Raises what `load` raises; errors are not cached.
        """
        if refresh:
            self._drop(key)
            self._pending.pop(key, None)
        cached = self.cached(key)
        if cached is not None:
            return cached
        pending = self._pending.get(key)
        if pending is None:
            pending = asyncio.ensure_future(load())
            self._pending[key] = pending
            pending.add_done_callback(lambda done: self._loaded(key, done))
        # A client that disconnects must not cancel the load for the others.
        return await asyncio.shield(pending)

    def clear(self) -> None:
        """Drop every response, including those of pending loads."""
        self._entries.clear()
        self._bytes = 0
        self._pending.clear()

    def _loaded(self, key: Hashable, done: asyncio.Future[TaggedBody]) -> None:
        failed = done.cancelled() or done.exception() is not None
        if self._pending.get(key) is not done:
            return
        del self._pending[key]
        if not failed:
            self._store(key, done.result())

    def _store(self, key: Hashable, answer: TaggedBody) -> None:
        self._drop(key)
        self._entries[key] = _Entry(answer, self._clock() + self._seconds)
        self._bytes += len(answer.body)
        while self._entries and (
            self._bytes > self._max_bytes
            or len(self._entries) > self._max_entries
            or next(iter(self._entries.values())).expires <= self._clock()
        ):
            self._drop(next(iter(self._entries)))

    def _drop(self, key: Hashable) -> None:
        entry = self._entries.pop(key, None)
        self._bytes -= len(entry.answer.body) if entry is not None else 0
