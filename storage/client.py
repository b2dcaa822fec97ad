"""Access to ClickHouse: clients from a URL, insert settings, and properties of the server.

Clients block, so event loops call them in threads. Every failure is a `ClickHouseError` of the driver.
"""

import ssl
import time
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import parse_qsl, unquote, urlsplit
from urllib.request import urlopen
from uuid import UUID

import clickhouse_connect
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError
from clickhouse_connect.driver.external import ExternalData
from msgspec import Struct

from schemas.addresses import host_port
from schemas.errors import BadSetting

__all__ = ["ClickHouseError", "Client"]

INSERT_SETTINGS: Final[Mapping[str, int]] = {
    # All are sent with each insert, because their defaults differ between server versions.
    "async_insert": 0,
    "insert_deduplicate": 1,
    "deduplicate_blocks_in_dependent_materialized_views": 1,
    "max_insert_threads": 1,
    # Materialized views in parallel: the same work, in a third less time on two cores.
    "parallel_view_processing": 1,
    # A block becomes one part per table and time partition, whatever its size.
    "max_insert_block_size": 1 << 20,
    "min_insert_block_size_rows": 1 << 20,
    "min_insert_block_size_bytes": 1 << 30,
    # Without a limit: a block has up to six weeks times the retentions of its projects, and one that is refused
    # for them is refused for ever.
    "max_partitions_per_insert_block": 0,
}
REPLICA_SETTINGS: Final = {
    # A row that a majority of the replicas has survives the loss of one. The others have it within a moment,
    # or the insert has failed.
    "insert_quorum": "auto",
    "insert_quorum_parallel": 1,
    "insert_quorum_timeout": 60_000,
    # An insert that outlives its server's session with Keeper fails: it must not arrive after a move to
    # another replica.
    "insert_keeper_max_retries": 0,
    # A replica that is down doesn't hold up a deletion; it deletes when it is back.
    "lightweight_deletes_sync": 1,
}
"""For all statements on servers whose tables are replicated."""
_CONNECT_SECONDS: Final = 5
_ANSWER_SECONDS: Final = 120
_LIFE_SECONDS: Final = 4
# An in-memory database, which each start of the server recreates.
LIFE: Final = "SELECT max(uuid) FROM system.databases WHERE name = 'INFORMATION_SCHEMA'"


class Address(Struct, frozen=True):
    """The parts of `http(s)://user:password@host:port/database?ca_file=PATH&replicas=N`.

    Without a file, the system's CAs count.
    """

    scheme: str
    host: str
    port: int
    user: str
    password: str
    database: str
    ca_file: str | None = None
    replicas: int = 1

    @property
    def host_port(self) -> str:
        """Host and port."""
        return host_port(self.host, self.port)


def parse_url(url: str) -> Address:
    """The parts of SVC_CLICKHOUSE_URL. Raises BadSetting if it is invalid."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise BadSetting(f"SVC_CLICKHOUSE_URL: {error}") from None
    database = parts.path.strip("/")
    if parts.scheme not in {"http", "https"} or not parts.hostname or not database.isidentifier():
        raise BadSetting("SVC_CLICKHOUSE_URL must be http(s)://user:password@host:port/database")
    query = dict(parse_qsl(parts.query))
    return Address(
        scheme=parts.scheme,
        host=parts.hostname,
        port=port or (8443 if parts.scheme == "https" else 8123),
        user=unquote(parts.username or "default"),
        password=unquote(parts.password or ""),
        database=database,
        ca_file=query.get("ca_file"),
        replicas=int(query.get("replicas", 1)),
    )


def open_client(
    url: str, *, database: str | None = None, settings: Mapping[str, Any] | None = None, **options: Any
) -> Client:
    """A client of the server at `url`, in its database or in `database`.

    Raises ClickHouseError if the server doesn't answer. A client may be used by one thread at a time.
    """
    address = parse_url(url)
    client = clickhouse_connect.get_client(
        interface=address.scheme,
        host=address.host,
        port=address.port,
        username=address.user,
        password=address.password,
        database=database or address.database,
        ca_cert=address.ca_file,
        settings={**(REPLICA_SETTINGS if address.replicas > 1 else {}), **(settings or {})},
        **{
            "compress": False,
            "autogenerate_session_id": False,
            "connect_timeout": _CONNECT_SECONDS,
            "send_receive_timeout": _ANSWER_SECONDS,
            "client_name": "svc",
            **options,
        },
    )
    # Only inserts: a third of the bytes, at no more CPU on either side (docs/decisions/writer.md).
    client.write_compression = "zstd"
    return client


def answers(url: str, seconds: float) -> bool:
    """Whether a server answers at the address within the timeout. Needs no user."""
    address = parse_url(url)
    context = ssl.create_default_context(cafile=address.ca_file) if address.scheme == "https" else None
    ping = f"{address.scheme}://{address.host_port}/ping"
    try:
        with urlopen(ping, timeout=seconds, context=context):  # noqa: S310 - the operator's own address
            return True
    except HTTPError as error:
        error.close()
        return True
    except (OSError, HTTPException):
        return False


def version(client: Client) -> tuple[int, int]:
    """Year and month of the server's release, such as (26, 2)."""
    year, month, *_rest = str(client.server_version).split(".")
    return int(year), int(month)


def scalar(
    client: Client,
    sql: str,
    parameters: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    external: ExternalData | None = None,
) -> Any:
    """The single value that a query returns. Raises ClickHouseError, also if there is no row.

    A server whose disk is full may return no row.
    """
    rows = client.query(
        sql, parameters=dict(parameters or {}), settings=dict(settings or {}), external_data=external
    ).result_rows
    if not rows:
        raise ClickHouseError("the query returned no row")
    return rows[0][0]


def started_at(client: Client) -> float:
    """When the server was started (Unix time by the local clock, accurate to two seconds)."""
    return time.time() - float(scalar(client, "SELECT uptime()"))


def is_replicated(client: Client) -> bool:
    """Whether the client was opened for a server with replicas."""
    return client.get_client_setting("insert_quorum") is not None


def life(client: Client) -> str:
    """An id of the server's current run: equal for all callers, and new after each start."""
    created = UUID(str(scalar(client, LIFE)))
    # Without a uuid of that database, the start time is used; two callers may round it differently.
    return created.hex if created.int else str(int(started_at(client) // _LIFE_SECONDS))
