from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.client import Client, open_client
from storage.migrations.migrate import migrate
from tests.integration.storage.grouped import Stage


@pytest.fixture
async def stage(
    kafka_bootstrap: str, clickhouse_database_url: str, topic_prefix: str, tmp_path: Path
) -> Stage:
    """Empty topics and tables."""
    return await Stage(kafka_bootstrap, clickhouse_database_url, topic_prefix, tmp_path).prepare()


@pytest.fixture
def client(clickhouse_database_url: str) -> Iterator[Client]:
    """A client of an empty database with all tables."""
    migrate(clickhouse_database_url)
    client = open_client(clickhouse_database_url)
    yield client
    client.close()
