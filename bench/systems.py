"""The systems of `bench.pipeline`: the product and the floor, each on its own servers."""

import asyncio
import gzip
import json
import os
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import aiohttp

from bench.floors.pipeline import records
from bench.load import PROJECTS
from bench.processes import cpu_seconds, resident_bytes
from bench.servers import headers, prepare
from cli.projects import create_project
from local.child import Child
from local.local_stack import BACKGROUND_NICE
from local.ports import free_port
from runtime.supervisor import Supervisor
from schemas.environment import load
from schemas.ids import new_token
from schemas.settings import MigrateSettings
from storage.client import Client, open_client

SERVERS: Final = ("kafka", "clickhouse")
PATH: Final = "/v1/events:batch"


class System:
    """A pipeline whose servers are in `folder`.

    `url` takes batches by the tokens that `make_tokens` gives once all `children` are ready; `database` has
    the tables `events` and `issues`, and `counting` is the SQL for the events that the issues have counted.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        children: Sequence[Child],
        url: str,
        database: str,
        counting: str,
        make_tokens: Callable[[], Awaitable[list[str]]],
    ) -> None:
        self.name = name
        self.url = url
        self.tokens: list[str] = []
        self._folder = folder
        self._supervisor = Supervisor([*children])
        self._database = database
        self._counting = counting
        self._make_tokens = make_tokens
        self._client: Client | None = None

    async def start(self) -> None:
        """Return when a batch is accepted by each token."""
        await self._supervisor.start()
        self._client = open_client(self._database)
        self.tokens = await self._make_tokens()
        empty = gzip.compress(b'{"events":[]}')
        async with aiohttp.ClientSession() as session:
            for token in self.tokens:
                async with asyncio.timeout(10):
                    status = 0
                    while status != 202:
                        await asyncio.sleep(0.05)
                        wanted = headers(token, zipped=True)
                        async with session.post(self.url, data=empty, headers=wanted) as answer:
                            status = answer.status

    async def stop(self) -> None:
        """End all processes."""
        if self._client is not None:
            self._client.close()
        await self._supervisor.stop()

    def number(self, sql: str) -> int:
        """The single number that a query returns."""
        assert self._client is not None
        return int(self._client.query(sql).result_rows[0][0] or 0)

    def stored(self) -> int:
        """Events that can be queried."""
        return self.number("SELECT count() FROM events")

    def counted(self) -> int:
        """Events that issues have counted."""
        return self.number(self._counting)

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
        parts = self._client.query(
            "SELECT table, sum(bytes_on_disk) FROM system.parts"
            " WHERE active AND database = currentDatabase() GROUP BY table"
        )
        return sizes + Counter({f"ClickHouse, {name}": int(size) for name, size in parts.result_rows})


def product(folder: Path, cache: Path) -> System:
    """The product by its own commands, as `svc up` starts it."""
    stack = prepare(folder, cache)
    settings = load(MigrateSettings, stack.environ)

    async def make_tokens() -> list[str]:
        projects = [
            await create_project(settings, f"bench {number}", rate_limit=1_000_000)
            for number in range(PROJECTS)
        ]
        return [project.token for project in projects]

    counting = "SELECT sum(events) FROM issues FINAL WHERE merged_into = 0"
    url = stack.ingest_url + PATH
    return System("product", folder, stack.children(), url, settings.clickhouse_url, counting, make_tokens)


def floor(folder: Path, cache: Path, samples: Sequence[bytes]) -> System:
    """The floor; payloads are compressed with the common content of the `samples`."""
    stack, port = prepare(folder, cache), free_port()
    settings = load(MigrateSettings, stack.environ)
    tokens = [new_token() for _ in range(PROJECTS)]
    shared = folder / "shared"
    shared.write_bytes(records.shared_by(samples))
    environ = {
        **os.environ,
        "FLOOR_KAFKA": settings.kafka_bootstrap,
        "FLOOR_CLICKHOUSE": settings.clickhouse_url,
        "FLOOR_PORT": str(port),
        "FLOOR_TOKENS": json.dumps({token: 1 + number for number, token in enumerate(tokens)}),
        "FLOOR_SHARED": str(shared),
        "FLOOR_DATA": str(folder / "faust"),
    }
    children = [
        *(child for child in stack.children() if child.name in SERVERS),
        Child("setup", lambda: _module("setup"), folder / "setup.log", env=environ, once=True),
        *(_process(name, folder, environ) for name in ("edge", "processors", "writer")),
    ]

    async def make_tokens() -> list[str]:
        return tokens

    url, counting = f"http://127.0.0.1:{port}{PATH}", "SELECT sum(n) FROM issues FINAL"
    return System("floor", folder, children, url, settings.clickhouse_url, counting, make_tokens)


def _module(name: str) -> list[str]:
    return [sys.executable, "-P", "-m", f"bench.floors.pipeline.{name}"]


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
