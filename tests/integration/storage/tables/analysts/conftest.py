"""An analyst's session and a world of events, on the server that the test module makes as `server`."""

from collections.abc import Iterator

import pytest

from local.clickhouse.local_clickhouse import LocalClickHouse
from storage.client import Client, open_client
from tests.integration.storage.tables.analysts import world as worlds
from tests.integration.storage.tables.analysts.session import Session
from tests.integration.storage.tables.analysts.world import World


@pytest.fixture(scope="module")
def database(server: LocalClickHouse) -> Iterator[Client]:
    client = open_client(server.url())
    yield client
    client.close()


@pytest.fixture(scope="module")
def world(database: Client) -> World:
    world = worlds.make()
    worlds.write(database, world)
    return world


@pytest.fixture(scope="module")
def analyst(server: LocalClickHouse, world: World) -> Session:
    return Session(server.url("analyst"))
