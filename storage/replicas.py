"""Replicas of a server: their tables are Replicated, and one of them is written to.

The guarantees of a server rest on that one server's state: its running inserts, its sessions, its block
numbers. So writers and commands use one replica, whose id is recorded with the migrations. Each session
begins with the question whether it still is that one. `svc migrate --moved` records another one, once the
first is stopped (`docs/decisions/shards.md`).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

from storage.client import ClickHouseError, Client, is_replicated, scalar
from storage.errors import AnotherServer
from storage.server_identity import RECORD_SETTINGS, identity, record, recorded, server_id

_MOVING: Final = "moving from "
"""Recorded in place of a server's id while another server completes its tables: writers wait."""
QUORUMS: Final = """
    SELECT concat(zookeeper_path, '/quorum/parallel') FROM system.replicas
    WHERE database = currentDatabase() AND table IN {tables:Array(String)}"""
WAITING: Final = "SELECT count() FROM system.zookeeper WHERE path IN ({paths})"
ACTIVE: Final = """
    SELECT max(replica_is_active[{name:String}]) FROM system.replicas WHERE database = currentDatabase()"""
TABLES: Final = "SELECT table FROM system.replicas WHERE database = currentDatabase() ORDER BY table"


def begin_session(client: Client, seconds: int) -> Mapping[str, Any]:
    """Settings with which the server refuses a statement after a restart or a long pause.

    The pause is more than these seconds (and two) after the last statement with them. A process can't check
    that itself: it may be frozen between its check and its statement. Raises ClickHouseError, and
    AnotherServer from a replica that isn't the recorded one.
    """
    number = uuid4().hex
    session = {"session_id": number, "session_timeout": seconds}
    if is_replicated(client):
        known = scalar(client, _is_recorded(client), settings={**session, **RECORD_SETTINGS})
        if not known:
            raise AnotherServer(
                "this replica isn't the one that is written to: correct SVC_CLICKHOUSE_SHARDS"
            )
    else:
        client.query("SELECT 1", settings=session)
    return {"session_id": number, "session_check": 1}


def lacks_majority(client: Client, tables: Iterable[str]) -> bool:
    """Whether one of the tables has a block that a majority of the replicas doesn't have yet.

    Such a block may still fail. Raises ClickHouseError.
    """
    if not is_replicated(client):
        return False
    rows = client.query(QUORUMS, parameters={"tables": sorted(tables)}).result_rows
    # The paths are constants of the statement, as the server's documentation of this table asks for.
    paths = ", ".join("'" + str(path).replace("'", "\\'") + "'" for (path,) in rows)
    return bool(paths) and bool(scalar(client, WAITING.format(paths=paths)))


def move(client: Client, url: str, shard: str, others: Sequence[str]) -> None:
    """Make the replica at `url` the one that is written to; `others` are the addresses of the rest.

    Repeatable. Raises AnotherServer while the recorded one runs, and ClickHouseError.
    """
    server = server_id(url)
    known = recorded(client)[0].removeprefix(_MOVING)
    if known in {"", server}:
        return
    # From here on no session begins. Those of before have ended with their server.
    record(client, _MOVING + known, shard)
    if _is_running(client, known, others):
        record(client, known, shard)
        raise AnotherServer(
            "the replica that is written to is running: stop its server before another takes its place"
        )
    for (table,) in client.query(TABLES).result_rows:
        client.command(f"SYSTEM SYNC REPLICA {table}")
    record(client, server, shard)


def _is_running(client: Client, server: str, others: Sequence[str]) -> bool:
    """Whether the server has its session with Keeper, or answers at one of the addresses."""
    if scalar(client, ACTIVE, {"name": server.rpartition("/")[2]}):
        return True
    for url in others:
        try:
            if server_id(url) == server:
                return True
        except ClickHouseError:
            continue
    return False


def _is_recorded(client: Client) -> str:
    return (
        f"SELECT ({identity(client)}) ="  # noqa: S608
        " (SELECT argMax(server, applied) FROM migrations WHERE server != '')"
    )
