"""The rate limit across machines: the `limits` library's moving window in Redis or Valkey."""

import logging
import time
from importlib.util import find_spec
from typing import Any, Final

from edge.limits.local_window import WINDOW_SECONDS, RateLimiter

log = logging.getLogger(__name__)

_SCHEMES: Final = ("redis://", "rediss://", "valkey://", "valkeys://")
_PAUSE_SECONDS: Final = 5.0


def store_error(url: str) -> str:
    """Why a store can't be used, or ""."""
    if not url.startswith(_SCHEMES):
        return "expected a URL that begins with " + " or ".join(_SCHEMES)
    if find_spec("valkey") is None:
        return "needs the extra `rate-limit-store`: pip install 'svc-service[rate-limit-store]'"
    return ""


class RemoteWindow:
    """Checks the store, and `local` while the store doesn't respond within `wait` seconds.

    So our failures refuse no request. `local` counts the admitted requests too, so a store that dies doesn't
    begin an empty window here.

    Valkey's client works with both servers.
    """

    def __init__(self, url: str, local: RateLimiter, wait: float) -> None:
        # Imported only if a store is configured: the library and its client add 0.2 s to the start.
        from limits import RateLimitItemPerSecond
        from limits.aio.storage import RedisStorage
        from limits.aio.strategies import MovingWindowRateLimiter
        from limits.errors import StorageError

        self._local = local
        self._storage = RedisStorage(
            "async+" + url,
            wrap_exceptions=True,
            implementation="valkey",
            socket_timeout=wait,
            socket_connect_timeout=wait,
        )
        self._limiter = MovingWindowRateLimiter(self._storage)
        self._item = RateLimitItemPerSecond
        self._unavailable = (StorageError, OSError)
        self._local_until = 0.0

    async def acquire(self, token: str, limit: int) -> int:
        """Admit and return 0, or milliseconds until a retry can succeed."""
        if limit > 0 and time.monotonic() >= self._local_until:
            try:
                return await self._check(token, limit)
            except self._unavailable as error:
                log.warning(
                    "the rate-limit store does not respond, using this machine's windows: %s",
                    error,
                    extra={"event": "rate_limit_store_failed"},
                )
                self._local_until = time.monotonic() + _PAUSE_SECONDS
        return await self._local.acquire(token, limit)

    async def close(self) -> None:
        bridge: Any = self._storage.bridge
        await bridge.get_connection().aclose()
        await self._local.close()

    async def _check(self, token: str, limit: int) -> int:
        item = self._item(limit, WINDOW_SECONDS, namespace="svc")
        if await self._limiter.hit(item, token):
            await self._local.acquire(token, limit)
            return 0
        stats = await self._limiter.get_window_stats(item, token)
        return max(1, int((stats.reset_time - time.time()) * 1000) + 1)
