"""The edge's real HTTP surface in this process, with a sink in memory: every part but Kafka is the real one."""

import asyncio
import gzip
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from edge.delivery.chunk_delivery import ChunkDelivery
from edge.delivery.chunker import Chunker, ChunkLimits
from edge.delivery.outcome_reports import OutcomeReporter
from edge.delivery.publisher import EventPublisher
from edge.delivery.spool import Spool
from edge.edge_metrics import EdgeMetrics
from edge.http.body import BodyReader, BodyTimes
from edge.http.edge_app import EdgeApp
from edge.http.edge_server import EdgeServer
from edge.http.endpoints import Ingest
from edge.limits.body_budget import BodyBudget
from edge.limits.connections import ConnectionLimits
from edge.limits.local_window import LocalWindow
from edge.limits.refusal_throttle import RefusalThrottle
from edge.limits.scheduler import FairScheduler
from edge.project_snapshot import ProjectSnapshot
from schemas.chunks import ChunkEvent, decode_chunk
from schemas.health import Health
from schemas.ids import new_token
from schemas.projects import Project, Token, encode_project
from schemas.topics import Topic
from tests.eventually import eventually
from tests.unit.edge.delivery.memory_sink import MemorySink

LARGE = 1 << 20
"""From here on aiohttp's client asks for a file."""
MOMENT = "2026-01-01T00:00:00.000Z"


class LiveEdge:
    """An edge that listens; `project` has one token, `lenient` another and is lenient to `react-native/*`."""

    def __init__(
        self,
        folder: Path,
        body_timeout: float = 30.0,
        spool_bytes: int = 1 << 20,
        head_seconds: float = 10.0,
    ) -> None:
        self.sink = MemorySink()
        self.spool = Spool(folder, spool_bytes, 3600)
        self.chunker = Chunker(ChunkDelivery(self.sink, self.spool).deliver, ChunkLimits(linger_ms=1))
        self.projects = ProjectSnapshot(folder / "projects.json")
        self.metrics = EdgeMetrics()
        self.outcomes = OutcomeReporter(self.sink, folder / "outcomes.json", flush_seconds=0.05)
        self.limiter = LocalWindow(folder / "rate-limit")
        self.health = Health()
        self.bodies = BodyReader(BodyTimes(body_timeout))
        self.throttle = RefusalThrottle()
        self.body_budget = BodyBudget(256 << 20, 32 << 20)
        self.app = EdgeApp(self.ingest(EventPublisher(self.chunker, self.sink)), self.health, self.metrics)
        self.connections = ConnectionLimits(10_000, 0)
        server = EdgeServer(self.handle, self.metrics, self.connections, head_seconds)
        self.runner = web.ServerRunner(server, shutdown_timeout=1)
        self.project = self.add_project("1")
        self.lenient = self.add_project("2", lenient_sdks=("react-native/*",))
        self.port = 0
        self.session: aiohttp.ClientSession
        self._sockets: list[socket.socket] = []
        self._writers: list[asyncio.StreamWriter] = []

    def ingest(self, publisher: EventPublisher) -> Ingest:
        return Ingest(
            projects=self.projects,
            limiter=self.limiter,
            publisher=publisher,
            metrics=self.metrics,
            outcomes=self.outcomes,
            bodies=self.bodies,
            body_budget=self.body_budget,
            throttle=self.throttle,
            scheduler=FairScheduler(),
        )

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        return await self.app.handle(request)

    def break_intake(self, publisher: EventPublisher) -> None:
        """From now on events are handed to another intake."""
        self.app = EdgeApp(self.ingest(publisher), self.health, self.metrics)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def add_project(self, number: str, **fields: Any) -> Project:
        project = Project(
            id=number, name="shop", created_at=MOMENT, **({"tokens": (Token(new_token(), MOMENT),)} | fields)
        )
        self.projects.apply(number.encode(), encode_project(project))
        return project

    def headers(self, project: Project | None = None, **more: str) -> dict[str, str]:
        """The headers of section 5; a header given as "" is left out."""
        given = {
            "Authorization": f"Bearer {(project or self.project).tokens[0].token}",
            "Svc-Sdk": "svc-js/1.2.3",
            "Content-Type": "application/json",
        } | {name.replace("_", "-"): value for name, value in more.items()}
        return {name: value for name, value in given.items() if value}

    async def post(
        self,
        body: bytes,
        path: str = "/v1/events",
        headers: Mapping[str, str] | None = None,
        method: str = "POST",
    ) -> "Answer":
        data = BytesIO(body) if len(body) > LARGE else body
        async with self.session.request(
            method, self.url + path, data=data, headers=self.headers() if headers is None else headers
        ) as response:
            return Answer(response.status, dict(response.headers), await response.read())

    async def metrics_page(self) -> bytes:
        return (await self.post(b"", "/metrics", headers={}, method="GET")).body

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self._writers.append(writer)
        return reader, writer

    def connector(self) -> aiohttp.TCPConnector:
        """For `session`."""

        def new_socket(address: tuple[Any, ...]) -> socket.socket:
            self._sockets.append(socket.socket(*address[:3]))
            return self._sockets[-1]

        return aiohttp.TCPConnector(socket_factory=new_socket)

    def hang_up(self) -> None:
        """Close the connections that a test left open."""
        for writer in self._writers:
            writer.transport.abort()

    def are_clients_closed(self) -> bool:
        """Whether each client's socket is closed: one that still had something to send lives on for a moment."""
        sockets = [*self._sockets, *(writer.get_extra_info("socket") for writer in self._writers)]
        return all(one.fileno() < 0 for one in sockets)

    async def post_event(self, **fields: Any) -> "Answer":
        from tests.edge_events import encoded

        return await self.post(encoded(**fields))

    async def post_batch(self, events: list[Any], compressed: bool = False) -> "Answer":
        body = json.dumps({"events": events}).encode()
        headers = self.headers(Content_Encoding="gzip" if compressed else "")
        return await self.post(gzip.compress(body) if compressed else body, "/v1/events:batch", headers)

    def stored(self) -> list[ChunkEvent]:
        """Every event that went to Kafka."""
        chunks = [record.value for record in self.sink.records if record.topic is Topic.EVENTS]
        return [event for chunk in chunks for event in decode_chunk(chunk)]

    def stored_bytes(self) -> list[bytes]:
        return [event.payload for event in self.stored()]


class Answer:
    """A response, read."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def fields(self) -> list[str]:
        """The fields of `details`."""
        return [detail["field"] for detail in self.json["details"]]

    def __repr__(self) -> str:
        return f"{self.status} {self.body!r}"


@asynccontextmanager
async def live_edge(folder: Path, loaded: bool = True, **options: Any) -> AsyncIterator[LiveEdge]:
    """An edge for the time of a test."""
    edge = LiveEdge(folder, **options)
    if loaded:
        edge.projects.set_current()
    edge.health.set("accepting", True)
    await edge.runner.setup()
    site = web.TCPSite(edge.runner, "127.0.0.1", 0)
    await site.start()
    edge.port = edge.runner.addresses[0][1]
    try:
        async with aiohttp.ClientSession(connector=edge.connector(), auto_decompress=False) as edge.session:
            yield edge
    finally:
        edge.hang_up()
        await edge.runner.cleanup()
        await eventually(edge.are_clients_closed)
        await edge.chunker.stop()
        await edge.spool.stop()
        await edge.limiter.close()
