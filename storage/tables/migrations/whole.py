"""The second database of each of several servers, NAME_all: the same tables over all of them.

It also has the analysts' views upon these tables. Events and the rows derived from them are on one server
each: a Distributed table reads all. The other tables are the same on each server: a Merge table, which passes
FINAL on, reads the server's own. No table here has rows, so each migration recreates them.
"""

from typing import Final

from storage.client import Client, open_client, parse_url, version
from storage.shards import WHOLE
from storage.tables.analyst_views import create, own_views
from storage.tables.migrations.migrate import create_database, migrations, statements

SPREAD: Final = (
    *("events", "payloads", "issue_day", "issue_day_er", "issue_hour", "project_hour", "tag_day"),
    *("erasures", "erased_counts", "erased_events", "erasing", "artifacts", "artifact_links"),
)
"""Tables of which each server has a part."""
COPIED: Final = ("issues", "issue_activity", "changes", "outcomes", "projects", "retentions")
"""Tables that are the same on each server."""
VIEWS: Final = ("analysts", "analyst_changes")
"""The migrations that have nothing but views."""


def create_distributed(url: str, whole_url: str, cluster: str) -> None:
    """Create the database over all servers of `cluster` on the server of `url`. Raises ClickHouseError."""
    create_database(whole_url)
    own = parse_url(url).database
    client = open_client(whole_url)
    try:
        for statement in whole_tables(own, parse_url(whole_url).database, cluster):
            client.command(statement)
        for statement in _views(client):
            create(client, statement)
        own_views(client)
    finally:
        client.close()


def whole_statements(own: str, cluster: str) -> list[str]:
    """All statements, for who runs them by hand on the newest server."""
    whole = own + WHOLE
    views = [text for m in migrations() if m.name in VIEWS for text in statements(m.sql)]
    created = f"CREATE DATABASE IF NOT EXISTS {whole} ENGINE = Atomic"
    return [created, *whole_tables(own, whole, cluster), f"USE {whole}", *views]


def whole_tables(own: str, whole: str, cluster: str) -> list[str]:
    """The statements that make the tables."""
    return [
        f"CREATE OR REPLACE TABLE {whole}.{table} AS {own}.{table}"
        f" ENGINE = Distributed('{cluster}', '{own}', '{table}')"
        for table in SPREAD
    ] + [
        f"CREATE OR REPLACE TABLE {whole}.{table} AS {own}.{table} ENGINE = Merge('{own}', '^{table}$')"
        for table in COPIED
    ]


def _views(client: Client) -> list[str]:
    return [
        statement
        for migration in migrations()
        if migration.name in VIEWS
        for statement in statements(migration.sql, version(client))
    ]
