"""Delays the responses to a repeatedly refused token.

So a flood of refusals costs a bounded share of the event loop.
"""

import math
import time
from collections.abc import Callable
from typing import Final

_RATE: Final = 100
"""Refusals a second, of one token or of all unknown ones, to which one worker responds."""
_BURST: Final = 200
"""Refusals without a delay."""
_MAX_WAIT_SECONDS: Final = 3.0
"""A stopping worker waits for the responses that are delayed here."""
_MAX_TOKENS: Final = 1000


class RefusalThrottle:
    """When the next refusal of each token may be sent."""

    def __init__(self, now: Callable[[], float] | None = None) -> None:
        self._now = now or time.monotonic
        self._next_at: dict[str, float] = {}

    def wait_seconds(self, token: str) -> float:
        """Count a refusal of a token, "" for an unknown one; the seconds by which its response is delayed."""
        now = self._now()
        if len(self._next_at) >= _MAX_TOKENS:
            self._next_at = {name: next_at for name, next_at in self._next_at.items() if next_at > now}
        next_at = max(self._next_at.get(token, -math.inf), now) + 1 / _RATE
        # Responses with the longest delay don't queue behind each other: the connections alone bound the flood.
        self._next_at[token] = min(next_at, now + _BURST / _RATE + _MAX_WAIT_SECONDS)
        return max(0.0, self._next_at[token] - now - _BURST / _RATE)
