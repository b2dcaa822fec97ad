"""Trials of grouping rules: a thread of their own, one at a time, so that nothing else waits for them."""

import asyncio
import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from dashboard.http.errors import unavailable
from grouping.trial import PastEvent, Trial, regroup
from schemas.projects import GroupingRule

SECONDS: Final = 5.0
"""How long one trial may take; it ends with what it has seen until then."""
MAX_WAITING: Final = 3


class TrialQueue:
    """Runs trials. `close` at the end."""

    def __init__(self, seconds: float = SECONDS, max_waiting: int = MAX_WAITING) -> None:
        self._seconds = seconds
        self._max_waiting = max_waiting
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="trial")
        self._asked = 0

    async def run(
        self, rules: Sequence[GroupingRule], events: Sequence[PastEvent], discarded: Collection[int]
    ) -> Trial:
        """What the rules would do to the events. Raises Refused where too many wait already."""
        if self._asked > self._max_waiting:
            raise unavailable("other rules are being tested: try again in a moment")
        self._asked += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._thread, self._regroup, rules, events, discarded
            )
        finally:
            self._asked -= 1

    def close(self) -> None:
        """End the thread; a trial that is running ends at its deadline."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _regroup(
        self, rules: Sequence[GroupingRule], events: Sequence[PastEvent], discarded: Collection[int]
    ) -> Trial:
        until = time.monotonic() + self._seconds
        return regroup(rules, events, discarded, lambda: time.monotonic() < until)
