"""What `bench.pipeline` measures: the product, and the floor of `bench.floors.pipeline`, each on servers of its own."""

import asyncio
import gzip
import json
import os
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import aiohttp

from bench.floors.pipeline import records
from bench.load import PROJECTS
from bench.processes import cpu_seconds, resident_bytes
from bench.servers import headers, prepare
from cli.projects import create_project
from local.ports import free_port
from local.stack import BACKGROUND_NICE
from local.supervisor import Child, Supervisor
from schemas.environment import load
from schemas.ids import new_token
from schemas.settings import MigrateSettings
from storage.client import Client, open_client

SERVERS = ("kafka", "clickhouse")
PATH = "/v1/events:batch"


class System(ABC):
    """A pipeline: `url` takes batches by these `tokens`; `database` has the tables `events` and `issues`."""

    name: str
    url: str
    tokens: Sequence[str]
    events_of_issues: str
    """The SQL for the events that the issues have counted."""

    def __init__(self, folder: Path, supervisor: Supervisor, database: str) -> None:
        self._folder = folder
        self._supervisor = supervisor
        self._database = database
        self._client: Client | None = None

    async def start(self) -> None:
        """Return when a batch is accepted by each token."""
        await self._supervisor.start()
        self._client = open_client(self._database)
        await self._ready()
        empty = gzip.compress(b'{"events":[]}')
        async with aiohttp.ClientSession() as session:
            for token in self.tokens:
                for _ in range(200):
                    async with session.post(
                        self.url, data=empty, headers=headers(token, zipped=True)
                    ) as answer:
                        if answer.status == 202:
                            break
                    await asyncio.sleep(0.05)
                else:
                    raise RuntimeError("a new token is not accepted")

    @abstractmethod
    async def _ready(self) -> None:
        """Make tables and tokens, if the start hasn't."""

    async def stop(self) -> None:
        """End all processes."""
        if self._client is not None:
            self._client.close()
        await self._supervisor.stop()

    def number(self, sql: str) -> int:
        """The single number that a query returns."""
        assert self._client is not None
        return int(self._client.query(sql).result_rows[0][0] or 0)

    @property
    def stored(self) -> int:
        """Events that can be queried."""
        return self.number("SELECT count() FROM events")

    @property
    def counted(self) -> int:
        """Events that issues have counted."""
        return self.number(self.events_of_issues)

    def cpu(self) -> dict[str, float]:
        """CPU seconds of each process and its descendants."""
        return {name: cpu_seconds(pid) for name, pid in self._processes()}

    def memory(self) -> dict[str, float]:
        """Resident bytes of each process and its descendants."""
        return {name: resident_bytes(pid) for name, pid in self._processes()}

    def _processes(self) -> Iterator[tuple[str, int]]:
        for name, status in self._supervisor.statuses.items():
            if status.pid is not None:
                yield name, status.pid

    def stored_bytes(self) -> Counter[str]:
        """Bytes on the disk of Kafka, in one copy, by topic, and of ClickHouse, by table."""
        sizes = Counter[str]()
        for log in (self._folder / "kafka" / "data").glob("*-*/*.log"):
            sizes[f"Kafka, {log.parent.name.rpartition('-')[0]}"] += log.stat().st_size
        assert self._client is not None
        parts = "SELECT table, sum(bytes_on_disk) FROM system.parts WHERE active AND database = currentDatabase() GROUP BY table"
        return sizes + Counter(
            {f"ClickHouse, {name}": int(size) for name, size in self._client.query(parts).result_rows}
        )


class Product(System):
    """The product by its own commands, as `svc up` starts it."""

    name = "product"
    events_of_issues = "SELECT sum(events) FROM issues FINAL WHERE merged_into = 0"

    def __init__(self, folder: Path, cache: Path) -> None:
        stack = prepare(folder, cache)
        self._settings = load(MigrateSettings, stack.environ)
        self.url = stack.ingest_url + PATH
        super().__init__(folder, Supervisor(stack.children()), self._settings.clickhouse_url)

    async def _ready(self) -> None:
        projects = [
            await create_project(self._settings, f"bench {number}", rate_limit=1_000_000)
            for number in range(PROJECTS)
        ]
        self.tokens = [project.token for project in projects]


class Floor(System):
    """The floor; payloads are compressed with what the `samples` share."""

    name = "floor"
    events_of_issues = "SELECT sum(n) FROM issues FINAL"

    def __init__(self, folder: Path, cache: Path, samples: Sequence[bytes]) -> None:
        stack, port = prepare(folder, cache), free_port()
        servers = [child for child in stack.children() if child.name in SERVERS]
        settings = load(MigrateSettings, stack.environ)
        self.url = f"http://127.0.0.1:{port}{PATH}"
        self.tokens = [new_token() for _ in range(PROJECTS)]
        shared = folder / "shared"
        shared.write_bytes(records.shared_by(samples))
        environ = {
            **os.environ,
            "FLOOR_KAFKA": settings.kafka_bootstrap,
            "FLOOR_CLICKHOUSE": settings.clickhouse_url,
            "FLOOR_PORT": str(port),
            "FLOOR_TOKENS": json.dumps({token: 1 + number for number, token in enumerate(self.tokens)}),
            "FLOOR_SHARED": str(shared),
            "FLOOR_DATA": str(folder / "faust"),
        }
        topics = Child("topics", lambda: _module("topics"), folder / "topics.log", env=environ, once=True)
        processes = [_process(name, folder, environ) for name in ("edge", "processors", "writer")]
        super().__init__(folder, Supervisor([*servers, topics, *processes]), settings.clickhouse_url)

    async def _ready(self) -> None:
        """The child `topics` has made everything."""


def _module(name: str) -> list[str]:
    return [sys.executable, "-m", f"bench.floors.pipeline.{name}"]


def _process(name: str, folder: Path, environ: Mapping[str, str]) -> Child:
    ready = folder / f"{name}.ready"
    return Child(
        name,
        lambda: _module(name),
        folder / f"{name}.log",
        ready.exists,
        {**environ, "FLOOR_READY": str(ready)},
        nice=0 if name == "edge" else BACKGROUND_NICE,
    )
