"""Identifies the ClickHouse server that has the data.

The server is recorded with the migrations, and compared when a writer starts and by `svc doctor`. Behind a
load balancer over several servers each would get a part of the rows, while each of them says that all is
well. With several shards, each server's place among them is recorded too: in another place it would get other
partitions.
"""

from threading import Lock
from typing import Final

from storage.client import Client, is_replicated, open_client, scalar
from storage.errors import AnotherServer
from storage.shards import ONLY, Shard

# Some engines have no server id. The database's id is created with it, and kept across restarts.
IDENTITY: Final = """
    SELECT concat(toString(serverUUID()), '/', toString(uuid)) FROM system.databases WHERE name = currentDatabase()"""
REPLICA_IDENTITY: Final = f"""
    SELECT concat(({IDENTITY.strip()}), '/', replica_name) FROM system.replicas
    WHERE database = currentDatabase() AND table = 'migrations'"""  # noqa: S608 - of two constants
"""The same of a replica, with its name in Keeper at the end."""
RECORD_SETTINGS: Final = {"insert_quorum_parallel": 0, "select_sequential_consistency": 1}
"""A replica reads the latest value recorded on any replica, or fails."""
RECORD: Final = """
    INSERT INTO migrations (number, name, server, shard, applied)
    SELECT {number:UInt32}, {name:String}, {server:String}, {shard:String},
        greatest(now64(3), max(applied) + toIntervalMillisecond(1))
    FROM migrations"""
_RECORDED: Final = "SELECT argMax((server, shard), applied) FROM migrations WHERE server != ''"
_CONNECTIONS: Final = 4


def server_id(url: str) -> str:
    """The id of the one server to which new connections lead. Raises AnotherServer, ClickHouseError."""
    found = {_id_of(url) for _ in range(_CONNECTIONS)}
    if len(found) > 1:
        raise AnotherServer(
            f"SVC_CLICKHOUSE_URL leads to {len(found)} servers, each of which would get a part of the rows:"
            " name one of them"
        )
    return found.pop()


def recorded(client: Client) -> tuple[str, str]:
    """The id of the server that was migrated last, and its place among the shards.

    Both are empty before the first migration that recorded one.
    """
    settings = RECORD_SETTINGS if is_replicated(client) else {}
    server, shard = scalar(client, _RECORDED, settings=settings)
    return str(server), str(shard)


def record(client: Client, server: str, shard: str) -> None:
    """Record the server of this id as that of the data from now on. Raises ClickHouseError.

    The record counts as the newest whatever the server's clock says.
    """
    number, name = client.query("SELECT max(number), argMax(name, number) FROM migrations").result_rows[0]
    values = {"number": number, "name": name, "server": server, "shard": shard}
    client.command(RECORD, parameters=values, settings=RECORD_SETTINGS if is_replicated(client) else {})


def identity(client: Client) -> str:
    """The statement that returns the id of the client's server."""
    return REPLICA_IDENTITY if is_replicated(client) else IDENTITY


def check_recorded(client: Client, server: str, shard: str) -> None:
    """Raises AnotherServer if the data was recorded to be on another server, or at another place."""
    known, known_shard = recorded(client)
    if known_shard not in {"", shard}:
        raise AnotherServer(
            f"this server was prepared as shard {known_shard}, and is named as {shard}:"
            " the servers and their order can't change;"
            " correct SVC_CLICKHOUSE_SHARDS, or name other databases and another SVC_TOPIC_PREFIX"
        )
    if known.startswith("moving"):
        raise AnotherServer("the move to another replica has not ended: run `svc migrate --moved` again")
    if known not in {"", server}:
        raise AnotherServer(
            "this is not the ClickHouse server, or not the database, that `svc migrate` prepared:"
            " correct SVC_CLICKHOUSE_URL,"
            " or, if the data was moved or restored here, run `svc migrate --moved`"
        )


def check_server(url: str, shard: str = ONLY) -> None:
    """Raises AnotherServer unless every connection leads to the recorded server, at its place."""
    server = server_id(url)
    client = open_client(url)
    try:
        check_recorded(client, server, shard)
    finally:
        client.close()


class ServerCheck:
    """`check_server` once, before the first statement of all its users; thread-safe."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._lock = Lock()
        self._is_checked = False

    def __call__(self) -> None:
        """Raises AnotherServer, ClickHouseError."""
        with self._lock:
            if not self._is_checked:
                check_server(self._shard.url, str(self._shard))
                self._is_checked = True


def _id_of(url: str) -> str:
    # Clients share their connections otherwise.
    client = open_client(url, dedicated_pool=True)
    try:
        return str(scalar(client, identity(client)))
    finally:
        client.close()
