"""One migrated database for the tests of a module; each test uses a new project."""

import secrets
from collections.abc import AsyncIterator, Iterator

import pytest

from storage.client import Client, open_client
from storage.read.execute import Executor, Limits
from storage.read.reader import Reader
from tests.integration.conftest import MakeTables
from tests.integration.storage.read.world import NOW_MS, World, insert, make
from tests.servers import new_database


@pytest.fixture(scope="module")
def database_url(clickhouse_url: str, make_tables: MakeTables) -> Iterator[str]:
    """The address of a database with all tables, dropped after the module."""
    with new_database(clickhouse_url) as url:
        make_tables(url)
        yield url


@pytest.fixture(scope="module")
def database(database_url: str) -> Iterator[Client]:
    """A client of that database."""
    client = open_client(database_url)
    yield client
    client.close()


@pytest.fixture
def project() -> int:
    """A project that no other test uses."""
    return secrets.randbelow(1 << 31) + 1


@pytest.fixture(scope="module")
def world(database: Client) -> World:
    """A project of events, issues and changes, in the database."""
    made = make(secrets.randbelow(1 << 31) + 1)
    insert(database, made)
    return made


@pytest.fixture
async def reader(database_url: str) -> AsyncIterator[Reader]:
    """A reader for which it is always the same moment."""
    made = Reader(Executor([database_url], Limits()), now_ms=lambda: NOW_MS)
    yield made
    await made.close()
