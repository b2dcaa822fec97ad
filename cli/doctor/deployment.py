"""`svc doctor` and what the processes of a deployment share beside the servers: payload dictionaries, the rate-limit store."""

import asyncio
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from cli.doctor.checks import Finding
from edge.limits.remote_window import store_error
from schemas.errors import BadPayload, BadSetting, MissingDictionary
from schemas.payload import number_of
from schemas.payload_dictionaries import Dictionaries
from schemas.settings import EdgeSettings
from storage.client import ClickHouseError, Client, open_client

_NAME: Final = "payload dictionaries"
_STORE: Final = "rate-limit store"
# A frame's head has its dictionary. A sample of the rows is enough: nobody waits for a whole table here.
_HEADS: Final = "SELECT any(substring(payload, 1, 18)) FROM payloads GROUP BY substring(payload, 5, 3)"
_BOUNDS: Final = {"max_rows_to_read": 200_000, "read_overflow_mode": "break"}


def check_dictionaries(folder: str, clickhouse_url: str) -> Finding:
    """Every dictionary of our own is whole, and those that stored payloads name are here."""
    own = Dictionaries(Path(folder) if folder else None)
    try:
        own.check()
        for number in sorted(_stored(clickhouse_url)):
            own.content(number)
    except (BadSetting, MissingDictionary) as error:
        mend = "put every dictionary that was ever used, with its sum, into the folder of SVC_PAYLOAD_DICTIONARIES"
        return Finding(_NAME, False, str(error), mend)
    return Finding(_NAME, True, f"all that are needed are here; the newest is number {own.newest()}")


def _stored(clickhouse_url: str) -> set[int]:
    """The numbers of the dictionaries that payloads name; none where the table can't be read, which other checks tell."""
    if not clickhouse_url:
        return set()
    try:
        client = open_client(clickhouse_url)
        try:
            return set(_numbers(client))
        finally:
            client.close()
    except (BadSetting, ClickHouseError):
        return set()


def _numbers(client: Client) -> list[int]:
    found = []
    for (head,) in client.query(_HEADS, settings=_BOUNDS, query_formats={"String": "bytes"}).result_rows:
        try:
            found.append(number_of(head))
        except BadPayload:
            continue
    return found


def check_rate_limit_store(settings: EdgeSettings) -> list[Finding]:
    """The store answers, where one is named."""
    url = settings.rate_limit_store
    if not url:
        return []
    place = urlsplit(url).netloc.rpartition("@")[2]
    if reason := store_error(url):
        return [Finding(_STORE, False, reason, "correct SVC_RATE_LIMIT_STORE")]
    try:
        asyncio.run(_ping(url, max(1.0, settings.rate_limit_store_seconds)))
    except Exception as error:  # noqa: BLE001 - the client's errors have no common base with those of sockets
        said = f"{place} can't be used: {str(error) or type(error).__name__}"
        mend = "start it, or correct address, user and password in SVC_RATE_LIMIT_STORE; until then each machine decides alone"
        return [Finding(_STORE, False, said, mend)]
    return [Finding(_STORE, True, f"{place} answers")]


async def _ping(url: str, seconds: float) -> None:
    from valkey.asyncio import Valkey

    client: Any = Valkey.from_url(url, socket_timeout=seconds, socket_connect_timeout=seconds)
    try:
        await client.ping()
    finally:
        await client.aclose()
