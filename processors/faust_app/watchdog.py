"""Detects a worker that makes no progress without failing: it ends, and a supervisor restarts it from its positions."""

import time
from typing import Final

RECOVERY_SECONDS: Final = 120.0
"""Longest time of a recovery without a record read."""
STALL_SECONDS: Final = 60.0
"""Longest time without progress while records wait."""
SILENCE_SECONDS: Final = 120.0
"""Longest time without an answer from the brokers about the ends of the source topics."""


class Stalled(Exception):
    """There is work and no progress."""


class Watchdog:
    """Watches the progress of named activities; `check` raises Stalled where one stops for too long."""

    def __init__(self) -> None:
        self._progress: dict[str, tuple[object, float]] = {}

    def only(self, name: str) -> None:
        """Forget all other activities: no progress is expected of them for now."""
        self._progress = {key: seen for key, seen in self._progress.items() if key == name}

    def check(self, name: str, progress: object, *, waiting: bool, seconds: float) -> None:
        """Raise Stalled if `progress`, any value that changes while work continues, is unchanged for `seconds` while work is `waiting`."""
        now = time.monotonic()
        known = self._progress.get(name)
        if not waiting or known is None or known[0] != progress:
            self._progress[name] = (progress, now)
        elif now - known[1] > seconds:
            raise Stalled(f"{name}: no progress for {now - known[1]:.0f} s")
