"""How many wrong passwords an address may try."""

from collections import OrderedDict, deque
from typing import Final

MOST: Final = 10
WINDOW_SECONDS: Final = 60.0
ADDRESSES: Final = 10_000
"""Addresses remembered; beyond it the one that failed longest ago is forgotten."""


class Attempts:
    """Failures by address in a sliding window. Times are seconds of a monotonic clock, given by the caller."""

    def __init__(self) -> None:
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()

    def wait_seconds(self, address: str, now: float) -> float:
        """How long the address has to wait before it may try again; 0 when it may now."""
        failures = self._failures.get(address)
        if failures is None:
            return 0.0
        while failures and failures[0] <= now - WINDOW_SECONDS:
            failures.popleft()
        if not failures:
            del self._failures[address]
            return 0.0
        return failures[0] + WINDOW_SECONDS - now if len(failures) >= MOST else 0.0

    def failed(self, address: str, now: float) -> None:
        """Count a wrong password."""
        self._failures.setdefault(address, deque()).append(now)
        self._failures.move_to_end(address)
        if len(self._failures) > ADDRESSES:
            self._failures.popitem(last=False)

    def succeeded(self, address: str) -> None:
        """Forget the failures of an address that knows the password."""
        self._failures.pop(address, None)
