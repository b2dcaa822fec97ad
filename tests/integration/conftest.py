"""Topics, tables, and processes upon them that end with the test."""

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from storage.client import Client, open_client
from storage.tables.migrations.migrate import migrate
from tests.integration.processors.process import WorkerProcess
from tests.integration.storage.grouped import Stage
from tests.servers import new_database, run_sql
from tests.topics import create_topics

PARTITIONS = 4
Start = Callable[..., WorkerProcess]
MakeTables = Callable[[str], None]


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


@pytest.fixture(scope="session")
def make_tables(clickhouse_url: str) -> MakeTables:
    """Makes all tables in an empty database, from a backup: a third of the CPU of a migration's statements.

    The migration's record names another database, so a process of ours refuses this one (`storage.server_identity`).
    """
    # The server keeps the backup in its memory, and for this session alone.
    session = {"session_id": secrets.token_hex(8), "session_timeout": "3600"}
    with new_database(clickhouse_url) as template:
        migrate(template)
        name = urlsplit(template).path.removeprefix("/")
        run_sql(clickhouse_url, f"BACKUP DATABASE {name} TO Memory('tables')", **session)

    def make(url: str) -> None:
        made = urlsplit(url).path.removeprefix("/")
        run_sql(clickhouse_url, f"RESTORE DATABASE {name} AS {made} FROM Memory('tables')", **session)

    return make


@pytest.fixture
async def stage(
    kafka_bootstrap: str, clickhouse_database_url: str, topic_prefix: str, tmp_path: Path
) -> Stage:
    """Empty topics and tables."""
    return await Stage(kafka_bootstrap, clickhouse_database_url, topic_prefix, tmp_path).prepare()


@pytest.fixture
def client(clickhouse_database_url: str, make_tables: MakeTables) -> Iterator[Client]:
    """A client of an empty database with all tables."""
    make_tables(clickhouse_database_url)
    client = open_client(clickhouse_database_url)
    yield client
    client.close()
