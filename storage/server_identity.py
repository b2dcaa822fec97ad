"""Which ClickHouse server has the data: recorded with the migrations, compared when a writer starts and by `svc doctor`.

Behind a load balancer over several servers each would get a part of the rows, while each of them says that all is well.
"""

from typing import Final

from storage.client import Client, open_client, scalar
from storage.errors import AnotherServer

# Some engines have no id of their own. That of the database is made with it, and kept across restarts.
IDENTITY: Final = """
    SELECT concat(toString(serverUUID()), '/', toString(uuid)) FROM system.databases WHERE name = currentDatabase()"""
_RECORDED: Final = "SELECT argMax(server, applied) FROM migrations WHERE server != ''"
_CONNECTIONS: Final = 4


def server_id(url: str) -> str:
    """The id of the one server to which new connections lead. Raises AnotherServer, ClickHouseError."""
    found = {_id_of(url) for _ in range(_CONNECTIONS)}
    if len(found) > 1:
        raise AnotherServer(
            f"SVC_CLICKHOUSE_URL leads to {len(found)} servers, each of which would get a part of the rows: name one of them"
        )
    return found.pop()


def recorded_id(client: Client) -> str:
    """The id of the server that was migrated last; empty before the first migration that recorded one."""
    return str(scalar(client, _RECORDED))


def check_recorded(client: Client, server: str) -> None:
    """Raises AnotherServer if the data was recorded to be on another server."""
    if recorded_id(client) not in {"", server}:
        raise AnotherServer(
            "this is not the ClickHouse server, or not the database, that `svc migrate` prepared: correct SVC_CLICKHOUSE_URL,"
            " or, if the data was moved or restored here, run `svc migrate --moved`"
        )


def check_server(url: str) -> None:
    """Raises AnotherServer unless every connection leads to the recorded server."""
    server = server_id(url)
    client = open_client(url)
    try:
        check_recorded(client, server)
    finally:
        client.close()


def _id_of(url: str) -> str:
    # Clients share their connections otherwise.
    client = open_client(url, dedicated_pool=True)
    try:
        return str(scalar(client, IDENTITY))
    finally:
        client.close()
