"""The whole service with separate principals, whose rights are withdrawn and given back while events flow.

It runs on a Kafka with TLS, SCRAM and ACLs, and on a ClickHouse with the documented grants. Each process has
its own principal.
"""

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import aiohttp
from aiohttp import web

from bench.servers import prepare
from broker.rights import Process, needs
from broker.topics import ensure_topics
from cli.demo.sample_events import fresh, load_samples
from cli.projects import CreatedProject
from local.local_stack import Stack
from runtime.supervisor import Supervisor
from schemas.settings import KafkaSettings, PipelineSettings
from storage.rights import Right, reader_rights, writer_rights
from storage.tables.migrations.migrate import migrate
from tests.e2e.whole_stack import SDK, project_of
from tests.granted_clickhouse import GrantedClickHouse
from tests.secured_kafka import Acl, SecuredKafka, acls
from tests.servers import CACHE, run_sql

RUNNING: Final[tuple[Process, ...]] = ("edge", "processors", "writer", "dashboard")
_NEEDS: Final = needs(PipelineSettings())
_STORE: Final[Mapping[str, list[Right]]] = {
    "processors": list(reader_rights("svc")),
    "writer": list(writer_rights("svc")),
    "dashboard": list(reader_rights("svc")),
}
"""The rights of each process on ClickHouse."""
_SAMPLES: Final = load_samples()


def _user_without(process: str, right: Right) -> str:
    """The ClickHouse user who has the other rights of the process."""
    return re.sub(r"\W+", "_", f"{process} without {right}").strip("_").lower()


class Way:
    """The way of one process to ClickHouse: it arrives there as `user`.

    The engine reads its users only when it starts, so a right is withdrawn by a user who has all the others.
    Every request is authenticated; only a session, that of one insert, stays with its user.
    """

    def __init__(self, server: GrantedClickHouse, user: str) -> None:
        self._server, self.user = server, user
        self._sessions: dict[str, str] = {}

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        """The address for the process."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._pass)
        runner = web.AppRunner(app, auto_decompress=False, handler_cancellation=True, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            async with aiohttp.ClientSession(auto_decompress=False) as self._session:
                yield f"http://any:unused@127.0.0.1:{runner.addresses[0][1]}/svc"
        finally:
            await runner.cleanup()

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        session = request.query.get("session_id")
        user = self._sessions.setdefault(session, self.user) if session else self.user
        target, _, rest = self._server.address(user).removeprefix("http://").rpartition("@")
        headers = request.headers.copy()
        for name in ("Authorization", "X-ClickHouse-User", "X-ClickHouse-Key", "Host"):
            headers.popall(name, None)
        headers.update({"X-ClickHouse-User": user, "X-ClickHouse-Key": target.partition(":")[2]})
        url = f"http://{rest.partition('/')[0]}{request.raw_path}"
        async with self._session.request(
            request.method, url, headers=headers, data=request.content if request.can_read_body else None
        ) as answer:
            response = web.StreamResponse(status=answer.status, headers=answer.headers)
            await response.prepare(request)
            async for part in answer.content.iter_any():
                await response.write(part)
            await response.write_eof()
            return response


class Rig:
    """The running service. `accepted` has the ids of all events that were answered with 202."""

    def __init__(
        self, kafka: SecuredKafka, clickhouse: GrantedClickHouse, ways: Mapping[str, Way], stack: Stack
    ) -> None:
        self._kafka, self._clickhouse, self._ways, self._stack = kafka, clickhouse, ways, stack
        self._urls = {"edge": stack.ingest_url, "dashboard": stack.dashboard_url} | {
            name: f"http://127.0.0.1:{stack.environ[f'SVC_{name.upper()}_HEALTH_PORT']}"
            for name in ("processors", "writer")
        }
        self.accepted: set[str] = set()

    @asynccontextmanager
    async def opened(self, project: CreatedProject) -> AsyncIterator["Rig"]:
        """With a client of the edge and of the read API."""
        password = self._stack.dashboard.admin_password
        self._project = project
        self._sending = {"Authorization": f"Bearer {project.token}", "Svc-Sdk": SDK}
        self._reading = {"Authorization": aiohttp.encode_basic_auth("admin", password)}
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(60)) as self._session:
            yield self

    async def withdraw(self, process: str, right: Acl | Right) -> None:
        """Take a right of the process away."""
        if isinstance(right, Acl):
            await self._kafka.forbid(right)
        else:
            self._ways[process].user = _user_without(process, right)

    async def give_back(self, process: str, right: Acl | Right) -> None:
        """Give the right back."""
        if isinstance(right, Acl):
            await self._kafka.allow(right)
        else:
            self._ways[process].user = process

    async def send(self) -> None:
        """Send some events, which the edge must accept."""
        rng = random.Random()
        events = fresh(rng.choices(_SAMPLES, k=3), datetime.now(UTC), rng)
        url = f"{self._urls['edge']}/v1/events:batch"
        async with self._session.post(url, json={"events": events}, headers=self._sending) as answer:
            assert answer.status == 202, await answer.text()
        self.accepted |= {str(UUID(event["id"]).int) for event in events}

    async def read(self) -> int:
        """The status of an answer of the read API."""
        url = f"{self._urls['dashboard']}/api/v1/projects/{self._project.id}/issues?limit=5"
        async with self._session.get(url, headers=self._reading) as answer:
            return answer.status

    async def ready(self, process: str) -> int:
        """The status of `/readyz`; 0 if the process doesn't answer."""
        try:
            async with self._session.get(f"{self._urls[process]}/readyz") as answer:
                return answer.status
        except (aiohttp.ClientError, TimeoutError):
            return 0

    def log(self, process: str) -> list[dict[str, Any]]:
        """The lines that the process has logged.

        Raises ValueError for a line that is not JSON, such as one of a bare traceback.
        """
        text = (self._stack.data_dir / "log" / f"{process}.log").read_text(encoding="utf-8")
        # The last one may be incomplete.
        return [json.loads(line) for line in text.rpartition("\n")[0].splitlines()]

    async def stored(self) -> Counter[str]:
        """How often each event is stored."""
        sql = f"SELECT id, count() FROM svc.events WHERE project_id = {self._project.id} GROUP BY id"
        rows = await asyncio.to_thread(run_sql, self._clickhouse.url(), sql)
        return Counter({event: int(count) for event, count in map(str.split, rows.splitlines())})


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Rig]:
    """The service, ready; afterwards everything is stopped."""
    users = {process: [f"GRANT {right}" for right in rights] for process, rights in _STORE.items()}
    users |= {
        _user_without(process, right): [f"GRANT {other}" for other in rights if other != right]
        for process, rights in _STORE.items()
        for right in rights
    }
    kafka = SecuredKafka(folder / "kafka", CACHE, RUNNING)
    clickhouse = GrantedClickHouse(folder / "clickhouse", users)
    async with AsyncExitStack() as cleanup:
        for server in (kafka, clickhouse):
            cleanup.push_async_callback(asyncio.to_thread, server.stop)
        await asyncio.gather(asyncio.to_thread(kafka.start, 120), asyncio.to_thread(clickhouse.start, 120))
        await ensure_topics(KafkaSettings(kafka_bootstrap=kafka.bootstrap))
        await kafka.allow(*(acl for process in RUNNING for acl in acls(process, _NEEDS[process])))
        await asyncio.to_thread(migrate, clickhouse.address("operator"))
        ways = {process: Way(clickhouse, process) for process in _STORE}
        addresses = {process: await cleanup.enter_async_context(way.open()) for process, way in ways.items()}
        stack = prepare(
            folder / "stack",
            CACHE,
            SVC_KAFKA_BOOTSTRAP=kafka.bootstrap,
            SVC_CLICKHOUSE_URL=addresses["writer"],
            SVC_KAFKA_SESSION_SECONDS="3",
        )
        children = [
            replace(
                child,
                nice=0,
                env={**(child.env or {}), **kafka.environ(child.name)}
                | ({"SVC_CLICKHOUSE_URL": addresses[child.name]} if child.name in addresses else {}),
            )
            for child in stack.children()
            if child.name in RUNNING
        ]
        # Rights are withdrawn sooner than a supervisor forgets the last restart: its pauses would grow.
        supervisor = Supervisor(children, restart_seconds=(0.5,))
        cleanup.push_async_callback(supervisor.stop)
        await supervisor.start()
        rig = Rig(kafka, clickhouse, ways, stack)
        yield await cleanup.enter_async_context(rig.opened(await project_of(stack)))
