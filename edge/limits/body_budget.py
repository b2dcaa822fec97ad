"""Bytes of bodies that are held until their answer, altogether and by token: no token can take the place of all others."""

from collections import Counter
from types import TracebackType
from typing import Self

from edge.http.errors import RequestError, unavailable
from schemas.errors import WireError

_RETRY_MS = 1000


class BodyBudget:
    """`most` bytes altogether, `most_each` of one token."""

    def __init__(self, most: int, most_each: int) -> None:
        self._most = most
        self._most_each = most_each
        self._by_token: Counter[str] = Counter()
        self.total = 0

    def of(self, token: str) -> "BodyReservation":
        """What one request of a token holds."""
        return BodyReservation(self, token)

    def reserve(self, token: str, size: int) -> None:
        """Raises Fault: 429 where the token's share is used up, which is the sender's doing, 503 where all is."""
        if self._by_token[token] + size > self._most_each:
            raise RequestError(WireError.RATE_LIMITED, "unanswered bodies", retry_after_ms=_RETRY_MS)
        if self.total + size > self._most:
            raise unavailable("memory")
        self._by_token[token] += size
        self.total += size

    def give_back(self, token: str, size: int) -> None:
        """What was taken is free again."""
        self.total -= size
        self._by_token[token] -= size
        if not self._by_token[token]:
            del self._by_token[token]


class BodyReservation:
    """Gives back at the end of `with` what was added."""

    __slots__ = ("_held", "_size", "_token")

    def __init__(self, held: BodyBudget, token: str) -> None:
        self._held = held
        self._token = token
        self._size = 0

    def add(self, size: int) -> None:
        """Hold so many bytes more. Raises Fault."""
        self._held.reserve(self._token, size)
        self._size += size

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._size:
            self._held.give_back(self._token, self._size)
