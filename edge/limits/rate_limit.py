"""The rate limit: a sliding window of 60 s per token, in which only admitted requests count (contract, section 2, point 11)."""

from typing import Final, Protocol

WINDOW_SECONDS: Final = 60


class RateLimiter(Protocol):
    """Admits or refuses requests."""

    async def acquire(self, token: str, limit: int) -> int:
        """Admit a request of a token with `limit` requests a window, and return 0; else milliseconds until there is room."""

    async def close(self) -> None:
        """Let go of files and connections."""
