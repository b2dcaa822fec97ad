"""Memory for bodies until their response, in total and by token: no token can use up what all others need."""

from collections import Counter
from types import TracebackType
from typing import Self

from edge.http.errors import RequestError, unavailable
from schemas.errors import WireError

_RETRY_MS = 1000


class BodyBudget:
    """`max_bytes` in total, `max_token_bytes` for one token."""

    def __init__(self, max_bytes: int, max_token_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._max_token_bytes = max_token_bytes
        self._by_token: Counter[str] = Counter()
        self.total = 0

    def reservation(self, token: str) -> "BodyReservation":
        """The reservation of one request, empty at first."""
        return BodyReservation(self, token)

    def reserve(self, token: str, size: int) -> None:
        """Raises RequestError: 429 if the token's share is used up, which its sender caused, 503 if the total is."""
        if self._by_token[token] + size > self._max_token_bytes:
            raise RequestError(WireError.RATE_LIMITED, "unanswered bodies", retry_after_ms=_RETRY_MS)
        if self.total + size > self._max_bytes:
            raise unavailable("memory")
        self._by_token[token] += size
        self.total += size

    def release(self, token: str, size: int) -> None:
        """Return reserved bytes."""
        self.total -= size
        self._by_token[token] -= size
        if not self._by_token[token]:
            del self._by_token[token]


class BodyReservation:
    """Releases the added bytes at the end of the `with` block."""

    __slots__ = ("_budget", "_size", "_token")

    def __init__(self, budget: BodyBudget, token: str) -> None:
        self._budget = budget
        self._token = token
        self._size = 0

    def add(self, size: int) -> None:
        """Reserve `size` more bytes. Raises RequestError."""
        self._budget.reserve(self._token, size)
        self._size += size

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._size:
            self._budget.release(self._token, self._size)
