"""Seeing a worker that has stopped working without dying: it is ended, and started again from its positions."""

import time
from typing import Final

RECOVERY_SECONDS: Final = 120.0
"""Longest recovery without a record read."""
STALL_SECONDS: Final = 60.0
"""Longest time in which records wait and none is processed."""
SILENCE_SECONDS: Final = 120.0
"""Longest time without an answer where the source topics end."""


class Stalled(Exception):
    """Nothing moves although something should."""


class Watchdog:
    """Told now and then how far the worker is; `look` raises Stalled where that doesn't change for too long."""

    def __init__(self) -> None:
        self._progress: dict[str, tuple[object, float]] = {}

    def only(self, what: str) -> None:
        """Nothing else is expected to move for now: what is looked at later begins anew."""
        self._progress = {name: mark for name, mark in self._progress.items() if name == what}

    def look(self, what: str, progress: object, *, waiting: bool, seconds: float) -> None:
        """`progress` is any value that changes while work goes on; `waiting` says whether there is work."""
        now = time.monotonic()
        known = self._progress.get(what)
        if not waiting or known is None or known[0] != progress:
            self._progress[what] = (progress, now)
        elif now - known[1] > seconds:
            raise Stalled(f"{what}: no progress for {now - known[1]:.0f} s")
