"""Spreads refusals: a token that is refused over and over gets its answers at a pace, so a flood of them costs a bounded share of the loop."""

import math
import time
from collections.abc import Callable
from typing import Final

_A_SECOND: Final = 100
"""Refusals of one token, or of all that are unknown, that are answered a second by one worker."""
_AT_ONCE: Final = 200
"""So many are answered at once before."""
_LONGEST_SECONDS: Final = 3.0
"""A worker that stops waits for those who wait here."""
_MOST_TOKENS: Final = 1000


class RefusalThrottle:
    """When the next refusal of each token is due."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._next_at: dict[str, float] = {}

    def wait_seconds(self, token: str) -> float:
        """Count a refusal of a token, "" for one that isn't known; how long its answer has to wait."""
        now = self._now()
        if len(self._next_at) >= _MOST_TOKENS:
            self._next_at = {name: due for name, due in self._next_at.items() if due > now}
        due = max(self._next_at.get(token, -math.inf), now) + 1 / _A_SECOND
        # Whoever waits the longest time keeps no place behind it: the flood is as long as its connections are many.
        self._next_at[token] = min(due, now + _AT_ONCE / _A_SECOND + _LONGEST_SECONDS)
        return max(0.0, self._next_at[token] - now - _AT_ONCE / _A_SECOND)
