"""The rights that `svc guest plan` lists for several servers: with them everything works, and each is needed."""

import secrets
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest

from schemas.environment import load
from schemas.ids import user_hash, uuid7
from schemas.settings import MigrateSettings
from storage.client import ClickHouseError, open_client, scalar
from storage.maintain.erase.erase_user import erase_user
from storage.maintain.reconcile.reconcile import compare
from storage.rights import ClickHouseRights, Right, Rights, operator_rights, reader_rights, writer_rights
from storage.shards import WHOLE, open_servers, reader_urls, whole_url
from storage.tables.migrations.migrate import migrate
from storage.tables.migrations.whole import create_distributed
from tests.granted_clickhouse import PASSWORD, user_xml
from tests.shard_servers import CLUSTER, ShardServer, shard_servers

pytestmark = pytest.mark.slow

COUNT = 2
DATABASE = f"test_granted_{secrets.token_hex(4)}"
ROLES: dict[str, Rights] = {"operator": operator_rights, "writes": writer_rights, "reads": reader_rights}
EXTRA = {
    f"{role}_{number}": (role, right)
    for role, rights in ROLES.items()
    for number, right in enumerate(
        sorted({*rights(DATABASE, True, False)} - {*rights(DATABASE, False, False)}, key=str)
    )
}
"""By a user without them: the additional rights of a role on several servers."""


def statements(role: str, without: Right | None = None) -> list[str]:
    return [f"GRANT {right}" for right in ROLES[role](DATABASE, True, False) if right != without]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ShardServer]]:
    users = {role: statements(role) for role in ROLES}
    users |= {name: statements(role, right) for name, (role, right) in EXTRA.items()}
    text = "".join(user_xml(name, given) for name, given in users.items())
    with shard_servers(tmp_path_factory.mktemp("granted"), COUNT, text) as started:
        for server in started:
            client = open_client(server.url(), database="system")
            client.command(f"CREATE DATABASE {DATABASE}")
            client.close()
        yield started


@pytest.fixture(autouse=True)
def _nothing_whole(servers: Sequence[ShardServer]) -> None:
    for server in servers:
        client = open_client(server.url(), database="system")
        client.command(f"DROP DATABASE IF EXISTS {DATABASE}{WHOLE} SYNC")
        client.command(f"CREATE DATABASE {DATABASE}{WHOLE}")
        client.close()


def settings_of(servers: Sequence[ShardServer], user: str) -> MigrateSettings:
    """The settings of a process that is this user."""
    hosts = [urlsplit(server.url()).netloc.rpartition("@")[2] for server in servers]
    urls = [f"http://{user}:{PASSWORD}@{host}/{DATABASE}" for host in hosts]
    return load(MigrateSettings, {"SVC_CLICKHOUSE_SHARDS": ",".join(urls), "SVC_CLICKHOUSE_CLUSTER": CLUSTER})


def work(servers: Sequence[ShardServer], operator: str, writer: str, reader: str) -> None:
    """The statements of commands, writer and dashboard. Raises ClickHouseError."""
    settings = settings_of(servers, operator)
    for number, url in enumerate(settings.shard_urls):
        migrate(url, shard=f"{number + 1}/{COUNT}")
    for url in settings.shard_urls:
        create_distributed(url, whole_url(settings, url), CLUSTER)
    with open_servers(settings_of(servers, writer)) as opened:
        for server in opened:
            columns = ["project_id", "id", "ts", "received", "user_id", "user_hash", "fingerprint"]
            now = datetime.now(UTC)
            row = [7, uuid7(int(now.timestamp() * 1000)).int, now, now, "ann", user_hash(7, "ann"), 100]
            server.own.insert("ingest", [row], column_names=columns)
            assert scalar(server.whole, "SELECT count() FROM events") > 0
    with open_servers(settings) as opened:
        compare(opened, datetime.now(UTC).date())
        erase_user(opened, 7, "ann", "me", lambda: None, lambda *_: None, lambda _: None)
    reading = reader_urls(settings_of(servers, reader))
    for url in reading:
        client = open_client(url)
        client.query("SELECT * FROM events INNER JOIN projects USING (project_id)")
        client.query("SELECT * FROM analyst_events LIMIT 1")
        client.close()


async def test_everything_works_with_these_rights(servers: list[ShardServer]) -> None:
    work(servers, "operator", "writes", "reads")
    for role, rights in ROLES.items():
        assert await ClickHouseRights(settings_of(servers, role).shard_urls, rights, spread=True)() == []


@pytest.mark.parametrize("name", EXTRA)
async def test_each_right_is_needed_and_named_where_it_is_missing(
    servers: list[ShardServer], name: str
) -> None:
    role, right = EXTRA[name]
    users = {role: role for role in ROLES} | {role: name}
    with pytest.raises(ClickHouseError):
        work(servers, users["operator"], users["writes"], users["reads"])
    found = await ClickHouseRights(settings_of(servers, name).shard_urls, ROLES[role], spread=True)()
    assert found == [str(right)]
