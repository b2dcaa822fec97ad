"""Topics, tables, and processes upon them that end with the test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from storage.client import Client, open_client
from storage.tables.migrations.migrate import migrate
from tests.integration.processors.process import WorkerProcess
from tests.integration.storage.grouped import Stage
from tests.topics import create_topics

PARTITIONS = 4
Start = Callable[..., WorkerProcess]


@pytest.fixture
async def prefix(kafka_bootstrap: str, topic_prefix: str) -> str:
    """The prefix of topics that are there."""
    await create_topics(kafka_bootstrap, topic_prefix, PARTITIONS)
    return topic_prefix


@pytest.fixture
def start(kafka_bootstrap: str, prefix: str, tmp_path: Path) -> Iterator[Start]:
    """Starts processors by name, in a hurry unless another module is named."""
    workers: list[WorkerProcess] = []

    def begin(name: str = "0", **extra: str) -> WorkerProcess:
        extra.setdefault("module", "tests.integration.processors.hurried_worker")
        worker = WorkerProcess(kafka_bootstrap, prefix, tmp_path, name, **extra).start()
        workers.append(worker)
        return worker

    yield begin
    for worker in workers:
        if worker.running:
            worker.kill()


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
