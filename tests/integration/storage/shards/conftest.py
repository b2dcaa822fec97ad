"""Three servers as the shards of a cluster, with one world spread over them."""

import secrets
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

import pytest

from storage.client import open_client
from storage.read.execute import Executor, Limits
from storage.read.reader import Reader
from storage.shards import WHOLE
from storage.tables.migrations.migrate import migrate
from storage.tables.migrations.whole import SPREAD, create_distributed
from tests.integration.storage.read.conftest import project, world  # noqa: F401 - fixtures
from tests.integration.storage.read.world import NOW_MS
from tests.shard_servers import CLUSTER, ShardServer, shard_servers

COUNT = 3


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ShardServer]]:
    with shard_servers(tmp_path_factory.mktemp("shards"), COUNT) as started:
        yield started


@pytest.fixture(scope="module")
def urls(servers: list[ShardServer]) -> list[str]:
    """The addresses of a new database on each, for the tests of a file."""
    return new_databases(servers)


def new_databases(servers: Sequence[ShardServer]) -> list[str]:
    """The addresses of a new database on each."""
    name = f"test_{secrets.token_hex(6)}"
    made = [urlsplit(server.url())._replace(path=f"/{name}").geturl() for server in servers]
    for number, url in enumerate(made):
        migrate(url, shard=f"{number + 1}/{COUNT}")
    for url in made:
        create_distributed(url, url + WHOLE, CLUSTER)
    return made


class SpreadClient:
    """Writes as writers do, and reads all servers.

    Rows of an event are written to the server of its partition, here chosen by its id; all other rows to each
    server.
    """

    def __init__(self, urls: Sequence[str]) -> None:
        self._own = [open_client(url) for url in urls]
        self._whole = open_client(urls[0] + WHOLE)

    def insert(self, table: str, rows: Sequence[Sequence[Any]], column_names: list[str], **more: Any) -> None:
        spread = table == "ingest" or table in SPREAD
        at = column_names.index("id") if spread else 0
        for number, client in enumerate(self._own):
            mine = [row for row in rows if row[at] % COUNT == number] if spread else rows
            if mine:
                client.insert(table, mine, column_names=column_names, **more)

    def command(self, *arguments: Any, **more: Any) -> None:
        for client in self._own:
            client.command(*arguments, **more)

    def query(self, *arguments: Any, **more: Any) -> Any:
        return self._whole.query(*arguments, **more)

    def close(self) -> None:
        for client in (*self._own, self._whole):
            client.close()


@pytest.fixture(scope="module")
def database(urls: list[str]) -> Iterator[SpreadClient]:
    client = SpreadClient(urls)
    yield client
    client.close()


@pytest.fixture
async def reader(urls: list[str]) -> AsyncIterator[Reader]:
    """A reader for which it is always the same moment."""
    made = Reader(Executor([url + WHOLE for url in urls], Limits()), now_ms=lambda: NOW_MS)
    yield made
    await made.close()
