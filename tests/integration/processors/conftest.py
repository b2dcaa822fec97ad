"""Topics for a test, a folder, and workers that end with it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.processors.process import WorkerProcess
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
    """Starts workers by name."""
    workers: list[WorkerProcess] = []

    def begin(name: str = "0", **extra: str) -> WorkerProcess:
        worker = WorkerProcess(kafka_bootstrap, prefix, tmp_path, name, **extra).start()
        workers.append(worker)
        return worker

    yield begin
    for worker in workers:
        if worker.running:
            worker.kill()
