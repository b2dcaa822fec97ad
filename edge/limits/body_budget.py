"""Memory for bodies until their response, in total and by token: no token can starve the others.

Bytes count once they have come: a declared length costs its sender nothing. If the memory is full, the token
that holds most is stopped for one that holds less.
"""

from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Self

from edge.request_errors import RequestError, unavailable
from schemas.errors import WireError

_RETRY_MS = 1000


class BodyBudget:
    """`max_bytes` in total, `max_token_bytes` for one token."""

    def __init__(self, max_bytes: int, max_token_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._max_token_bytes = max_token_bytes
        self._by_token: Counter[str] = Counter()
        self._receiving: dict[str, dict[BodyReservation, Callable[[], None]]] = {}
        self.total = 0

    def reservation(self, token: str) -> "BodyReservation":
        """The reservation of one request, empty at first."""
        return BodyReservation(self, token)

    def check(self, token: str, size: int) -> None:
        """Raises RequestError: 429 if the token's share is used up, which its sender caused."""
        if self._by_token[token] + size > self._max_token_bytes:
            raise RequestError(WireError.RATE_LIMITED, "unanswered bodies", retry_after_ms=_RETRY_MS)

    def reserve(self, token: str, size: int) -> None:
        """Count bytes that have come.

        Raises RequestError as `check` does, and 503 if the memory is full and no other token can be stopped.
        """
        self.check(token, size)
        while self.total + size > self._max_bytes:
            greediest = max(self._receiving, key=self._by_token.__getitem__, default=token)
            if self._by_token[greediest] <= self._by_token[token] + size:
                raise unavailable("memory")
            next(iter(self._receiving[greediest])).give_way()
        self._by_token[token] += size
        self.total += size

    def release(self, token: str, size: int) -> None:
        self.total -= size
        self._by_token[token] -= size
        if not self._by_token[token]:
            del self._by_token[token]

    def begin(self, reservation: "BodyReservation", token: str, stop: Callable[[], None]) -> None:
        """A body is being received, and can be stopped."""
        self._receiving.setdefault(token, {})[reservation] = stop

    def end(self, reservation: "BodyReservation", token: str) -> Callable[[], None] | None:
        """It no longer is; how it was to be stopped."""
        bodies = self._receiving.get(token, {})
        stop = bodies.pop(reservation, None)
        if not bodies:
            self._receiving.pop(token, None)
        return stop


class BodyReservation:
    """Releases the added bytes at the end of the `with` block."""

    __slots__ = ("_budget", "_gave_way", "_size", "_token")

    def __init__(self, budget: BodyBudget, token: str) -> None:
        self._budget = budget
        self._token = token
        self._size = 0
        self._gave_way = False

    def check(self, size: int) -> None:
        """Refuse a body that would exceed the token's share. Raises RequestError."""
        self._budget.check(self._token, size)

    def add_bytes(self, size: int) -> None:
        """Reserve `size` more bytes. Raises RequestError."""
        if self._gave_way:
            raise unavailable("memory")
        self._budget.reserve(self._token, size)
        self._size += size

    def begin(self, stop: Callable[[], None]) -> None:
        """The body is being received; `stop` is called if another token needs the memory."""
        self._budget.begin(self, self._token, stop)

    def end(self) -> None:
        """It has been received, or given up. Raises RequestError if it was stopped."""
        self._budget.end(self, self._token)
        if self._gave_way:
            raise unavailable("memory")

    def give_way(self) -> None:
        """Leave the memory to another token."""
        self._gave_way = True
        self._release()
        stop = self._budget.end(self, self._token)
        if stop:
            stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._release()

    def _release(self) -> None:
        if self._size:
            self._budget.release(self._token, self._size)
            self._size = 0
