from collections.abc import Iterator

import pytest

from storage.client import Client, open_client
from storage.migrate import migrate


@pytest.fixture
def client(clickhouse_database_url: str) -> Iterator[Client]:
    migrate(clickhouse_database_url)
    client = open_client(clickhouse_database_url)
    yield client
    client.close()
