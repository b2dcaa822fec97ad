"""Faust as it is loses and repeats records after a restart with a backlog; with the cure it doesn't."""

import asyncio
import json
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import NewTopic

from broker.client import open_admin
from schemas.settings import KafkaSettings
from tests.integration.processors.skip_worker import PARTITIONS, RECORD_BYTES, TAKE

TAKES = 40
"""So many that records fetched twice have come through to the agent."""
CURED_STARTS = 4
BARE_STARTS = 4
"""The first start has nothing to seek to; each later one goes wrong."""
RECORDS = 2 * CURED_STARTS * TAKES * TAKE
"""More than all starts take: a worker that has read everything would never print its last take."""


@pytest.fixture
async def backlog(kafka_bootstrap: str, topic_prefix: str) -> str:
    """A source topic with more records than the test reads, and a table's topic."""
    source = NewTopic(f"{topic_prefix}source", PARTITIONS, 1)
    table = NewTopic(f"{topic_prefix}table", PARTITIONS, 1, topic_configs={"cleanup.policy": "compact"})
    async with open_admin(KafkaSettings(kafka_bootstrap=kafka_bootstrap)) as admin:
        await admin.create_topics([source, table])
    async with AIOKafkaProducer(
        bootstrap_servers=kafka_bootstrap, linger_ms=5, max_batch_size=1 << 20
    ) as producer:
        sent = [
            await producer.send(source.name, b"v" * RECORD_BYTES, partition=i % PARTITIONS)
            for i in range(RECORDS)
        ]
        await asyncio.gather(*sent)
    return topic_prefix


class Starts:
    """Starts of one worker, each killed after some takes; `faults` are records skipped or repeated within a start."""

    def __init__(self, bootstrap: str, prefix: str, folder: Path, form: str) -> None:
        self._arguments = [bootstrap, prefix, str(folder), form]
        self._module = "tests.integration.processors.skip_worker"

    def faults(self) -> int:
        """Run once."""
        worker = subprocess.Popen(
            [sys.executable, "-P", "-m", self._module, *self._arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert worker.stdout is not None
        found = 0
        due: dict[int, int] = {}
        try:
            takes = (json.loads(line) for line in worker.stdout if line.startswith("[["))
            for take in islice(takes, TAKES):
                for partition, offset in take:
                    found += due.setdefault(partition, offset) != offset
                    due[partition] = offset + 1
        finally:
            worker.kill()
            worker.stdout.close()
            worker.wait()
        return found


async def test_with_the_patches_each_start_reads_every_record_once(
    kafka_bootstrap: str, backlog: str, tmp_path: Path
) -> None:
    starts = Starts(kafka_bootstrap, backlog, tmp_path, "cured")
    assert [await asyncio.to_thread(starts.faults) for _ in range(CURED_STARTS)] == [0] * CURED_STARTS


@pytest.mark.slow
async def test_without_the_patches_a_start_goes_wrong(
    kafka_bootstrap: str, backlog: str, tmp_path: Path
) -> None:
    """Should this fail, Faust may have been repaired: the patch can go."""
    starts = Starts(kafka_bootstrap, backlog, tmp_path, "bare")
    for _ in range(BARE_STARTS):
        if await asyncio.to_thread(starts.faults):
            return
    pytest.fail(f"no fault in {BARE_STARTS} starts")
