"""Creates the schema of ClickHouse in a database, and changes it: numbered SQL files, each applied once.

Every statement is idempotent, so an interrupted run can be repeated, and two processes can migrate
concurrently.
"""

import re
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import Final

from msgspec import Struct

from storage.client import Client, is_replicated, open_client, parse_url, scalar, version
from storage.replicas import move
from storage.server_identity import RECORD_SETTINGS, check_recorded, recorded, server_id
from storage.shards import ONLY
from storage.tables.analyst_views import create, own_views
from storage.tables.migrations.replicated import replicated

_FILE: Final = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")
_CONDITION: Final = re.compile(r"^-- (from|below) (\d+)\.(\d+)$")
TABLE: Final = """
CREATE TABLE IF NOT EXISTS migrations
(
    number UInt32,
    name String,
    applied DateTime64(3, 'UTC') DEFAULT now64(3),
    server String,
    shard String
)
ENGINE = ReplacingMergeTree
ORDER BY number
"""
"""The table of applied migrations, and of the server that was migrated: its id, and its place among the
shards."""
STORED: Final = """
    SELECT create_table_query FROM system.tables
    WHERE database = currentDatabase() AND engine LIKE '%MergeTree' ORDER BY name"""


class Migration(Struct, frozen=True):
    """One file of `storage/tables/migrations`: `why` is its first line."""

    number: int
    name: str
    why: str
    sql: str

    @property
    def record(self) -> str:
        # The names are those of our files.
        return f"INSERT INTO migrations (number, name) VALUES ({self.number}, '{self.name}')"  # noqa: S608


def migrations() -> list[Migration]:
    """All migrations in their order. Raises ValueError if the files aren't numbered 1, 2, 3..."""
    files = []
    for file in (resources.files("storage.tables.migrations")).iterdir():
        match = _FILE.fullmatch(file.name)
        if match is None:
            continue
        text = file.read_text(encoding="utf-8")
        first = text.partition("\n")[0]
        if not first.startswith("-- "):
            raise ValueError(f"{file.name}: the first line must say why, as a comment")
        files.append(Migration(number=int(match[1]), name=match[2], why=first.removeprefix("-- "), sql=text))
    files.sort(key=lambda migration: migration.number)
    if [migration.number for migration in files] != list(range(1, len(files) + 1)):
        raise ValueError("migrations must be numbered without a gap, each number once")
    return files


def statements(sql: str, server: tuple[int, int] | None = None) -> Iterator[str]:
    """The statements of a file for a server's version (year, month), or for the newest.

    Each ends with a semicolon at the end of a line. A statement under the line `-- from 26.2` is for servers
    of that version or newer, under `-- below 26.2` for older ones.
    """
    for part in re.split(r";[ \t]*(?:\n|$)", sql):
        lines = part.strip().splitlines()
        wanted = True
        for line in lines:
            match = _CONDITION.match(line)
            if match:
                recent = server is None or server >= (int(match[2]), int(match[3]))
                wanted = recent if match[1] == "from" else not recent
        statement = "\n".join(line for line in lines if not line.startswith("--")).strip()
        if statement and wanted:
            yield statement


def create_database(url: str) -> None:
    """Create the database that the URL names, where it is missing. Raises ClickHouseError.

    One that exists is left alone: creating it again, even `IF NOT EXISTS`, needs rights that migrating
    doesn't.
    """
    name = parse_url(url).database
    client = open_client(url, database="system")
    try:
        if not scalar(
            client, "SELECT count() FROM system.databases WHERE name = {name:String}", {"name": name}
        ):
            client.command(f"CREATE DATABASE IF NOT EXISTS {name} ENGINE = Atomic")
    finally:
        client.close()


def schema_statements(client: Client, migration: Migration) -> Iterator[str]:
    """The statements of a migration for the client's server. Raises ClickHouseError."""
    found = statements(migration.sql, version(client))
    return map(replicated, found) if is_replicated(client) else found


def pending(client: Client) -> list[Migration]:
    """The pending migrations, in order; those of later versions stay applied."""
    exists = client.command("EXISTS TABLE migrations")
    rows = client.query("SELECT DISTINCT number FROM migrations").result_rows if exists else ()
    done = {int(number) for (number,) in rows}
    return [migration for migration in migrations() if migration.number not in done]


def migrate(
    url: str, *, shard: str = ONLY, moved: bool = False, others: Sequence[str] = ()
) -> list[Migration]:
    """Create the database and apply pending migrations; returns them.

    Raises ClickHouseError and AnotherServer.

    `shard` is the server's place. `moved` says that the data was moved to this server, and records it from
    now on. `others` are its other replicas.
    """
    create_database(url)
    client = open_client(url)
    try:
        client.command(replicated(TABLE.strip()) if is_replicated(client) else TABLE)
        if moved and is_replicated(client):
            move(client, url, shard, others)
        settings = RECORD_SETTINGS if is_replicated(client) else {}
        server, todo = server_id(url), pending(client)
        known, known_shard = recorded(client)
        check_recorded(client, known if moved else server, shard)
        for migration in todo:
            for statement in schema_statements(client, migration):
                create(client, statement)
            client.command(migration.record, settings=settings)
        if (known, known_shard) != (server, shard):
            last = migrations()[-1]
            row = [last.number, last.name, server, shard]
            names = ["number", "name", "server", "shard"]
            client.insert("migrations", [row], column_names=names, settings=settings)
        own_views(client)
        return todo
    finally:
        client.close()


def copy_schema(first: str, url: str) -> None:
    """Give the replica at `url` the current tables of the first, and the views upon them.

    A table that others have is created from their definition: Keeper refuses that of the first migration once
    a later one has changed it. Raises ClickHouseError.
    """
    create_database(url)
    client, replica = open_client(first), open_client(url)
    try:
        for (text,) in client.query(STORED).result_rows:
            replica.command(str(text).replace("CREATE TABLE ", "CREATE TABLE IF NOT EXISTS ", 1))
        for migration in migrations():
            for statement in schema_statements(replica, migration):
                create(replica, statement)
        own_views(replica)
    finally:
        client.close()
        replica.close()
