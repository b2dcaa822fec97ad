"""The sliding window across machines: the `limits` library's moving window in Redis or Valkey."""

import logging
import time
from typing import Final

from limits import RateLimitItemPerSecond
from limits.aio.strategies import MovingWindowRateLimiter
from limits.storage import storage_from_string

from edge.ratelimit import WINDOW_SECONDS, RateLimiter

log = logging.getLogger(__name__)

_WAIT_SECONDS: Final = 0.25
_PAUSE_SECONDS: Final = 5.0


class RemoteWindow:
    """Asks the store; while it doesn't answer, the machine's own window decides: nobody is refused for our trouble."""

    def __init__(self, url: str, local: RateLimiter) -> None:
        self._local = local
        storage = storage_from_string(
            "async+" + url,
            implementation="redispy" if url.startswith("redis") else "valkey",
            wrap_exceptions=True,
            socket_timeout=_WAIT_SECONDS,
            socket_connect_timeout=_WAIT_SECONDS,
        )
        self._limiter = MovingWindowRateLimiter(storage)
        self._local_until = 0.0

    async def take(self, token: str, limit: int) -> int:
        """Admit and return 0, or milliseconds until a request is admitted."""
        if limit > 0 and time.monotonic() >= self._local_until:
            item = RateLimitItemPerSecond(limit, WINDOW_SECONDS, namespace="svc")
            try:
                if await self._limiter.hit(item, token):
                    return 0
                stats = await self._limiter.get_window_stats(item, token)
                return max(1, int((stats.reset_time - time.time()) * 1000) + 1)
            except Exception as error:  # noqa: BLE001  # each client library has a tree of errors of its own
                log.warning(
                    "the rate-limit store does not answer (%s): this machine decides", type(error).__name__
                )
                self._local_until = time.monotonic() + _PAUSE_SECONDS
        return await self._local.take(token, limit)

    async def close(self) -> None:
        """Close the machine's own window; the client's connections end with the process."""
        await self._local.close()
