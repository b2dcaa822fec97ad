"""Runs trials of grouping rules one at a time in a separate thread, so that the event loop stays free."""

import asyncio
import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from dashboard.http.http_errors import unavailable
from grouping.trial import PastEvent, Trial, run_trial
from schemas.projects import GroupingRule

SECONDS: Final = 5.0
"""Time limit of one trial; at the limit it returns a partial result."""
MAX_WAITING: Final = 3


class TrialQueue:
    """Runs trials. The owner calls `stop_thread` at the end."""

    def __init__(self, seconds: float = SECONDS, max_waiting: int = MAX_WAITING) -> None:
        self._seconds = seconds
        self._max_waiting = max_waiting
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="trial")
        self._queued = 0

    async def try_rules(
        self,
        rules: Sequence[GroupingRule],
        events: Sequence[PastEvent],
        discarded: Collection[int],
    ) -> Trial:
        """The effect of the rules on the events. Raises HttpError if too many trials are waiting."""
        if self._queued > self._max_waiting:
            raise unavailable("other rules are being tested: try again in a moment")
        self._queued += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._thread, self._run, rules, events, discarded
            )
        finally:
            self._queued -= 1

    def stop_thread(self) -> None:
        """Stop the thread; a running trial ends at its time limit."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _run(
        self,
        rules: Sequence[GroupingRule],
        events: Sequence[PastEvent],
        discarded: Collection[int],
    ) -> Trial:
        until = time.monotonic() + self._seconds
        return run_trial(rules, events, discarded, lambda: time.monotonic() < until, time.thread_time_ns)
