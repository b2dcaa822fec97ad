"""The check of `svc doctor` on the rate-limit store."""

import asyncio
from typing import Any, Final
from urllib.parse import urlsplit

from cli.doctor.basic_checks import Finding
from edge.limits.remote_window import store_error
from schemas.settings import EdgeSettings

_STORE: Final = "rate-limit store"


def check_rate_limit_store(settings: EdgeSettings) -> list[Finding]:
    """Check that the rate-limit store answers, if one is configured."""
    url = settings.rate_limit_store
    if not url:
        return []
    address = urlsplit(url).netloc.rpartition("@")[2]
    if problem := store_error(url):
        return [Finding(_STORE, False, problem, "correct SVC_RATE_LIMIT_STORE")]
    try:
        asyncio.run(_ping(url, max(1.0, settings.rate_limit_store_seconds)))
    except Exception as error:  # noqa: BLE001 - the client's errors have no common base with those of sockets
        detail = f"{address} can't be used: {str(error) or type(error).__name__}"
        fix = (
            "start it, or correct address, user and password in SVC_RATE_LIMIT_STORE; "
            "until then each machine limits on its own"
        )
        return [Finding(_STORE, False, detail, fix)]
    return [Finding(_STORE, True, f"{address} answers")]


async def _ping(url: str, seconds: float) -> None:
    from valkey.asyncio import Valkey

    client: Any = Valkey.from_url(url, socket_timeout=seconds, socket_connect_timeout=seconds)
    try:
        await client.ping()
    finally:
        await client.aclose()
