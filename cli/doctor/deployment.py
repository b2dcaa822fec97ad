"""The checks of `svc doctor` on payload dictionaries and the rate-limit store."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from cli.doctor.checks import Finding
from edge.limits.remote_window import store_error
from schemas.errors import BadPayload, BadSetting, MissingDictionary
from schemas.payload import FRAME_MAGIC, dictionary, number_of, use_dictionaries
from schemas.settings import EdgeSettings
from storage.client import ClickHouseError, Client, open_client

_NAME: Final = "payload dictionaries"
_STORE: Final = "rate-limit store"
# A frame's header names its dictionary. A sample of the rows suffices: a full scan would take too long.
_HEADS: Final = (
    "SELECT any(substring(payload, 1, 18)) FROM payloads WHERE pack = 0 AND startsWith(payload, unhex({magic:String}))"
    " GROUP BY substring(payload, 5, 3)"
)
_BOUNDS: Final = {"max_rows_to_read": 200_000, "read_overflow_mode": "break"}


def check_dictionaries(folder: str, clickhouse_urls: Sequence[str]) -> Finding:
    """Check that dictionaries of an earlier version are intact and that those of stored payloads are present."""
    try:
        use_dictionaries(folder)
        needed = sorted(set().union(*map(_stored, clickhouse_urls)))
        for number in needed:
            dictionary(number)
    except (BadSetting, MissingDictionary) as error:
        fix = "put every dictionary that was ever used, with its sum, into the folder of SVC_PAYLOAD_DICTIONARIES"
        return Finding(_NAME, False, str(error), fix)
    return Finding(
        _NAME,
        True,
        f"{len(needed)} of an earlier version are needed, and here" if needed else "none is needed",
    )


def _stored(clickhouse_url: str) -> set[int]:
    """The dictionary numbers of stored payloads; none if the table is unreadable, which other checks report."""
    try:
        client = open_client(clickhouse_url)
        try:
            return set(_numbers(client))
        finally:
            client.close()
    except (BadSetting, ClickHouseError):
        return set()


def _numbers(client: Client) -> list[int]:
    numbers = []
    for (head,) in client.query(
        _HEADS, {"magic": FRAME_MAGIC.hex()}, _BOUNDS, {"String": "bytes"}
    ).result_rows:
        with contextlib.suppress(BadPayload):
            numbers.append(number_of(head))
    return numbers


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
        fix = "start it, or correct address, user and password in SVC_RATE_LIMIT_STORE; until then each machine limits on its own"
        return [Finding(_STORE, False, detail, fix)]
    return [Finding(_STORE, True, f"{address} answers")]


async def _ping(url: str, seconds: float) -> None:
    from valkey.asyncio import Valkey

    client: Any = Valkey.from_url(url, socket_timeout=seconds, socket_connect_timeout=seconds)
    try:
        await client.ping()
    finally:
        await client.aclose()
