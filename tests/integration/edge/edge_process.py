"""A real edge as a separate process, and the records in its topics."""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from local.ports import free_port
from schemas.chunks import ChunkEvent, decode_chunk
from schemas.ids import new_project_id, new_token
from schemas.projects import Project, Token, encode_project
from schemas.topics import MAX_RECORD_BYTES
from tests.eventually import eventually
from tests.forked import ForkedProcess


class Stored(NamedTuple):
    """A record of a topic."""

    partition: int
    key: bytes | None
    value: bytes
    headers: dict[str, bytes]


class EdgeProcess:
    """`svc edge` with its own data directory and port."""

    def __init__(
        self, bootstrap: str, prefix: str, data_dir: Path, workers: int = 1, **settings: str
    ) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.data_dir = data_dir
        self._workers = workers
        self.environ = {
            **{k: v for k, v in os.environ.items() if not k.startswith("SVC_")},
            "SVC_KAFKA_BOOTSTRAP": bootstrap,
            "SVC_TOPIC_PREFIX": prefix,
            "SVC_INGEST_PORT": str(self.port),
            "SVC_DATA_DIR": str(data_dir),
            # A busy machine is no outage: only the tests of outages want the short deadline.
            "SVC_EDGE_SEND_DEADLINE_SECONDS": "30",
            "SVC_RATE_LIMIT_STORE_SECONDS": "30",
            **{f"SVC_{name.upper()}": value for name, value in settings.items()},
        }
        self.log_path = data_dir / "edge.log"
        self._process: ForkedProcess | None = None
        self._logged_before = 0

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self._logged_before = self.log_path.stat().st_size if self.log_path.exists() else 0
        self._process = ForkedProcess(
            "cli.edge", self.environ, self.log_path, ("--workers", str(self._workers))
        )

    async def ready(self, timeout: float = 60, connected: bool = True) -> None:
        """Wait until readyz answers 200, and until Kafka has been reached unless it is away."""
        # The workers share the port: each new connection may reach another listening worker, and all must be
        # ready.
        connector = aiohttp.TCPConnector(force_close=True)
        looks = 20 if self._workers > 1 else 1
        async with aiohttp.ClientSession(connector=connector) as session:

            async def one_answers() -> bool:
                assert self._process is not None
                assert self._process.poll() is None, self.log
                with suppress(aiohttp.ClientError):
                    async with session.get(f"{self.url}/readyz") as response:
                        parts = (await response.json())["parts"]
                        return response.status == 200 and not (connected and parts["delivery"]["detail"])
                return False

            async def all_answer() -> bool:
                logged = self.log_path.read_bytes()[self._logged_before :]
                return logged.count(b'"listening"') >= self._workers and all(
                    [await one_answers() for _ in range(looks)]
                )

            await eventually(all_answer, timeout)

    @property
    def log(self) -> str:
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    async def wait(self, timeout: float = 120) -> int:
        """The exit status."""
        assert self._process is not None
        return await asyncio.to_thread(self._process.wait, timeout)

    async def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.signal(signal.SIGTERM)
            try:
                await self.wait()
            except subprocess.TimeoutExpired:
                self.kill()
                raise


@asynccontextmanager
async def running(edge: EdgeProcess, ready: bool = True) -> AsyncIterator[EdgeProcess]:
    """Start the edge, and stop it in the end."""
    edge.start()
    try:
        if ready:
            await edge.ready()
        yield edge
    finally:
        await edge.stop()


async def write_project(bootstrap: str, prefix: str, **fields: Any) -> Project:
    """A project in the topic, with one token."""
    number = new_project_id()
    moment = "2026-01-01T00:00:00.000Z"
    given = {"name": "shop", "created_at": moment, "tokens": (Token(new_token(), moment),)} | fields
    project = Project(id=str(number), **given)
    await put_project(bootstrap, prefix, project)
    return project


async def put_project(bootstrap: str, prefix: str, project: Project) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
    await producer.start()
    try:
        await producer.send_and_wait(prefix + "projects", encode_project(project), key=project.id.encode())
    finally:
        await producer.stop()


async def records(bootstrap: str, topic: str) -> list[Stored]:
    """Everything in a topic now."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, max_partition_fetch_bytes=MAX_RECORD_BYTES)
    await consumer.start()
    try:
        found = consumer.partitions_for_topic(topic) or await _partitions(consumer, topic)
        partitions = [TopicPartition(topic, number) for number in found]
        consumer.assign(partitions)
        await consumer.seek_to_beginning(*partitions)
        ends = await consumer.end_offsets(partitions)
        read = []
        while any([await consumer.position(partition) < ends[partition] for partition in partitions]):
            for batch in (await consumer.getmany(timeout_ms=200)).values():
                read += [Stored(each.partition, each.key, each.value, dict(each.headers)) for each in batch]
        return read
    finally:
        await consumer.stop()


async def _partitions(consumer: AIOKafkaConsumer, topic: str) -> set[int]:
    """A topic's partitions; a broker that has just come back knows none for a moment."""
    consumer._client.add_topic(topic)

    async def known() -> set[int]:
        await consumer._client.force_metadata_update()
        return set(consumer.partitions_for_topic(topic) or ())

    return await eventually(known)


async def stored(bootstrap: str, prefix: str) -> list[tuple[int, ChunkEvent]]:
    """Every event in `events`, with the partition it is in."""
    return [
        (record.partition, event)
        for record in await records(bootstrap, prefix + "events")
        for event in decode_chunk(record.value)
    ]


def headers(project: Project, sdk: str = "svc-js/1.2.3", **more: str) -> dict[str, str]:
    """The headers of section 5."""
    return {
        "Authorization": f"Bearer {project.tokens[0].token}",
        "Svc-Sdk": sdk,
        "Content-Type": "application/json",
    } | more


def log_lines(edge: EdgeProcess) -> list[dict[str, Any]]:
    """The log, each line a JSON object."""
    return [json.loads(line) for line in edge.log.splitlines()]
