"""The documented rights are enough, and what is missing is named."""

from collections.abc import Iterator

import pytest

from storage.migrate import migrate, migrations
from tests.granted_clickhouse import GrantedClickHouse


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GrantedClickHouse]:
    server = GrantedClickHouse(tmp_path_factory.mktemp("clickhouse"))
    server.start(120)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def migrated(server: GrantedClickHouse) -> GrantedClickHouse:
    migrate(server.address("granted"))
    return server


def test_documented_rights_are_enough_to_migrate(server: GrantedClickHouse) -> None:
    assert migrate(server.address("granted")) == migrations()
    assert migrate(server.address("granted")) == []
