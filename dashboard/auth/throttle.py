"""The sign-in throttle: how many wrong passwords an address may try, and what an attack from many addresses slows down.

Only different passwords count: a program that repeats an old one guesses nothing and locks nobody out. A right password doesn't
wipe out the failures of its address, because others may share it.
"""

from collections import OrderedDict, deque
from typing import Final, NamedTuple, TypeVar

V = TypeVar("V")

WINDOW_SECONDS: Final = 60.0
MOST: Final = 10
"""Different wrong passwords of an address within the window."""
MOST_KNOWN: Final = 100
"""The same of an address that somebody has signed in from: many people may share it."""
MOST_OF_ALL: Final = 100
"""Wrong passwords of all addresses within the window; with more, addresses that nobody has signed in from are slowed down."""
DELAY_SECONDS: Final = 1.0
KNOWN_SECONDS: Final = 86_400.0
ADDRESSES: Final = 10_000
"""Addresses remembered of each kind; beyond it the one that was added longest ago is forgotten."""


class ThrottleDecision(NamedTuple):
    """What an attempt has to bear: refused for so long, or answered only after a delay; both in seconds, 0 for neither."""

    wait_seconds: float = 0.0
    delay_seconds: float = 0.0


class SignInThrottle:
    """Failures by address and of the account in sliding windows. Times are seconds of a monotonic clock, given by the caller."""

    def __init__(self, delay_seconds: float = DELAY_SECONDS) -> None:
        self._delay_seconds = delay_seconds
        # When each wrong password was first tried; only its hash is kept.
        self._failures: OrderedDict[str, dict[int, float]] = OrderedDict()
        self._known: OrderedDict[str, float] = OrderedDict()
        self._all: deque[float] = deque(maxlen=MOST_OF_ALL)

    def ask(self, address: str, now: float) -> ThrottleDecision:
        """Whether the address may try a password now."""
        failures = self._failures_of(address, now)
        if self._is_known(address, now):
            return ThrottleDecision(wait_seconds=_wait(failures, MOST_KNOWN, now))
        if not self._is_attacked(now):
            return ThrottleDecision(wait_seconds=_wait(failures, MOST, now))
        # Whoever has not failed is let in even now: an attack must not keep out those whom it imitates.
        return ThrottleDecision(_wait(failures, 1, now), 0.0 if failures else self._delay_seconds)

    def failed(self, address: str, password: str, now: float) -> None:
        """Count a wrong password."""
        failures = self._failures_of(address, now)
        if hash(password) in failures:
            return
        failures[hash(password)] = now
        self._all.append(now)
        _put(self._failures, address, failures)

    def succeeded(self, address: str, now: float) -> None:
        """Somebody at this address is signed in."""
        _put(self._known, address, now)

    def _failures_of(self, address: str, now: float) -> dict[int, float]:
        failures = self._failures.get(address, {})
        return {password: at for password, at in failures.items() if at > now - WINDOW_SECONDS}

    def _is_known(self, address: str, now: float) -> bool:
        return self._known.get(address, float("-inf")) > now - KNOWN_SECONDS

    def _is_attacked(self, now: float) -> bool:
        return len(self._all) == MOST_OF_ALL and self._all[0] > now - WINDOW_SECONDS


def _wait(failures: dict[int, float], most: int, now: float) -> float:
    """Until so many have left the window that one more fits."""
    if len(failures) < most:
        return 0.0
    return sorted(failures.values())[-most] + WINDOW_SECONDS - now


def _put(addresses: OrderedDict[str, V], address: str, value: V) -> None:
    addresses[address] = value
    addresses.move_to_end(address)
    if len(addresses) > ADDRESSES:
        addresses.popitem(last=False)
