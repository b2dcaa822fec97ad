"""The sign-in throttle: limits wrong passwords per address, and slows down distributed attacks.

Only distinct passwords count: a program that repeats an old password isn't guessing, and shouldn't lock out
its address. A correct password doesn't clear the failures of its address, because others may share the address.
"""

from collections import OrderedDict, deque
from typing import Final, NamedTuple, TypeVar

V = TypeVar("V")

WINDOW_SECONDS: Final = 60.0
MAX_FAILURES: Final = 10
"""Distinct wrong passwords per address within the window."""
MAX_FAILURES_KNOWN: Final = 100
"""The same for an address that someone has signed in from: many people may share it."""
MAX_FAILURES_TOTAL: Final = 100
"""Wrong passwords of all addresses within the window before addresses without a sign-in are slowed down."""
DELAY_SECONDS: Final = 1.0
KNOWN_SECONDS: Final = 86_400.0
MAX_ADDRESSES: Final = 10_000
"""Addresses remembered of each kind; the oldest is forgotten first."""


class ThrottleDecision(NamedTuple):
    """How long attempts are refused, or how long the answer is delayed; 0 for neither."""

    wait_seconds: float = 0.0
    delay_seconds: float = 0.0


class SignInThrottle:
    """Failures per address and in total, in sliding windows. Callers pass monotonic seconds as `now`."""

    def __init__(self, delay_seconds: float = DELAY_SECONDS) -> None:
        self._delay_seconds = delay_seconds
        # When each wrong password was first tried, by the hash of the password.
        self._failures: OrderedDict[str, dict[int, float]] = OrderedDict()
        self._known: OrderedDict[str, float] = OrderedDict()
        self._all: deque[float] = deque(maxlen=MAX_FAILURES_TOTAL)

    def check(self, address: str, now: float) -> ThrottleDecision:
        """Whether the address may try a password now."""
        failures = self._failures_of(address, now)
        if self._is_known(address, now):
            return ThrottleDecision(wait_seconds=_wait(failures, MAX_FAILURES_KNOWN, now))
        if not self._is_attacked(now):
            return ThrottleDecision(wait_seconds=_wait(failures, MAX_FAILURES, now))
        # An address without failures may still sign in: an attack must not lock out legitimate users.
        return ThrottleDecision(_wait(failures, 1, now), 0.0 if failures else self._delay_seconds)

    def failed(self, address: str, password: str, now: float) -> None:
        failures = self._failures_of(address, now)
        if hash(password) in failures:
            return
        failures[hash(password)] = now
        self._all.append(now)
        _put(self._failures, address, failures)

    def succeeded(self, address: str, now: float) -> None:
        """Record that someone at this address is signed in."""
        _put(self._known, address, now)

    def _failures_of(self, address: str, now: float) -> dict[int, float]:
        failures = self._failures.get(address, {})
        return {password: at for password, at in failures.items() if at > now - WINDOW_SECONDS}

    def _is_known(self, address: str, now: float) -> bool:
        return self._known.get(address, float("-inf")) > now - KNOWN_SECONDS

    def _is_attacked(self, now: float) -> bool:
        return len(self._all) == MAX_FAILURES_TOTAL and self._all[0] > now - WINDOW_SECONDS


def _wait(failures: dict[int, float], maximum: int, now: float) -> float:
    """Seconds until the window has room for one more failure."""
    if len(failures) < maximum:
        return 0.0
    return sorted(failures.values())[-maximum] + WINDOW_SECONDS - now


def _put(addresses: OrderedDict[str, V], address: str, value: V) -> None:
    addresses[address] = value
    addresses.move_to_end(address)
    if len(addresses) > MAX_ADDRESSES:
        addresses.popitem(last=False)
