"""Servers that a test may stop, back up and restore."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from local.kafka.server import LocalKafka
from tests.backed_up_clickhouse import BackedUpClickHouse
from tests.servers import CACHE
from tests.trace_collector import Collector, collecting


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with collecting() as found:
        yield found


@pytest.fixture
def own_kafka(tmp_path: Path) -> Iterator[LocalKafka]:
    broker = LocalKafka(tmp_path / "kafka", CACHE).start(120)
    yield broker
    broker.stop()


@pytest.fixture
def own_clickhouse(tmp_path: Path) -> Iterator[BackedUpClickHouse]:
    server = BackedUpClickHouse(tmp_path / "clickhouse").start(120)
    yield server
    server.stop()
