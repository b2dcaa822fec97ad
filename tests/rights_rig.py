"""The whole service with separate principals, whose rights are revoked and restored while events flow.

It runs on a Kafka with TLS, SCRAM and ACLs, and on a ClickHouse with the documented grants. Each process has
its own principal.
"""

import asyncio
import json
import math
import random
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from uuid import UUID

import aiohttp
from aiohttp import web
from msgspec import Struct

from bench.servers import prepare
from broker.client import name_of, reading
from broker.rights import Process, needs
from broker.topics import ensure_topics
from broker.types import Consumer, TopicPartition
from cli.demo.sample_events import load_samples, renewed
from cli.projects import CreatedProject, create_project
from control.project_edits import set_notification_rules
from control.project_store import ProjectStore
from local.stack import Stack
from runtime.supervisor import Supervisor
from schemas.errors import ProjectsUnavailable
from schemas.notifications import NotificationRule
from schemas.settings import KafkaSettings
from schemas.topics import Topic
from storage.rights import Right, reader_rights, writer_rights
from storage.tables.migrations.migrate import migrate
from tests.eventually import eventually
from tests.granted_clickhouse import ROOT, GrantedClickHouse
from tests.secured_kafka import DESCRIBE, GROUP, READ, TOPIC, WRITE, Acl, SecuredKafka, acls
from tests.servers import CACHE, run_sql

RUNNING: Final[tuple[Process, ...]] = ("edge", "processors", "writer", "dashboard", "notify")
NEEDS = needs("svc-processors", "svc-writer", grouped_events=True)
STORE: Final[Mapping[str, list[Right]]] = {
    "processors": list(reader_rights("svc")),
    "writer": list(writer_rights("svc")),
    "dashboard": list(reader_rights("svc")),
}
"""The rights on ClickHouse of each process that watches them: notify can do without ClickHouse."""
FIGURES: Final[Mapping[str, tuple[str, ...]]] = {
    "edge": ("accepts events", "sends events on", "learns new tokens", "counts refused events"),
    "processors": ("groups events",),
    "writer": ("stores events", "stores issues", "stores outcomes"),
    "dashboard": ("answers reads", "changes issues", "changes projects"),
    "notify": ("learns new rules", "sends messages"),
}
"""What each process does: figures that grow as long as it does it."""
WORKS: Final[Mapping[str, tuple[str, ...]]] = {
    "edge": ("send", "create", "count"),
    "processors": ("send", "count"),
    "writer": ("send", "count"),
    "dashboard": ("read", "change", "create"),
    "notify": ("send", "rename", "count"),
}
"""What the rig does again and again that makes these figures grow, and looks at them."""
TOGETHER: Final[Mapping[str, Sequence[str]]] = {
    "processors": [r"Read on topic svc.(grouped|issues|seen|projects)$|Write on topic svc.dead-letters"],
    "writer": [r"Read on topic svc.projects|Write|Describe", r"ALTER DELETE|SELECT ON system"],
    "dashboard": [r"Describe"],
}
"""Rights of a process that are taken away at once: each would be seen by what stops, and nothing does."""
LATER: Final[Mapping[str, str]] = {
    "processors": r"Write on topic svc.(?!dead-letters)",
    "writer": r"ALTER DELETE|SELECT ON system",
}
"""What stops without these depends on when the process next needs them, as when an insert fails."""
ONE_OF_EACH: Final[Mapping[Process, str]] = {
    "processors": "Read on topic svc.events",
    "writer": "INSERT ON svc.*",
    "dashboard": "SELECT ON svc.*",
    "edge": "Write on topic svc.events",
    "notify": "Write on topic svc.notifications",
}
PAGE: Final = ROOT / "docs/operate/permissions.md"
BEGIN: Final = "<!-- lost rights: made by `python -m tests.rights_rig` -->\n"
END: Final = "<!-- end of lost rights -->\n"
_HEAD: Final = (
    "| process | without | `/readyz` | goes on | stops | works again after |\n"
    "| --- | --- | --- | --- | --- | --- |\n"
)
_OPERATIONS = {READ: "Read", WRITE: "Write", DESCRIBE: "Describe"}
_KINDS = {TOPIC: "topic", GROUP: "group"}
_SAMPLES: Final = load_samples()[:200]
_OLD = timedelta(days=20)
"""Older than what processors remember: the id is looked up in ClickHouse."""
_PAUSE_SECONDS: Final = 0.3
_NAMED_SECONDS: Final = 30.0
"""On a busy machine; the promise is 10 s."""
_BACK_SECONDS: Final = 90.0
_LOOK_SECONDS: Final = 1.0
_TURN_SECONDS: Final = 60.0
_GROWTHS: Final = 3
"""The growths after which a figure counts as going on.

Work that was under way when the right was named makes it grow once or twice more."""
_STILL_LOOKS: Final = 8
"""For so many looks has a figure not grown that has stopped: the edge's counts grow every five seconds."""
_MOST_LOOKS: Final = 60


def name_of_right(right: Acl | Right) -> str:
    """The right as our processes name it."""
    if isinstance(right, Right):
        return str(right)
    return f"{_OPERATIONS[right.operation]} on {_KINDS[right.kind]} {right.name}"


def rounds(process: Process) -> Iterator[list[Acl | Right]]:
    """All documented rights of a process, as they are taken away: those of `TOGETHER` at once, each other one alone."""
    rights = [*acls(process, NEEDS[process]), *STORE.get(process, ())]
    for pattern in TOGETHER.get(process, ()):
        yield [right for right in rights if re.search(pattern, name_of_right(right))]
    alone = re.compile("|".join(TOGETHER.get(process, ["$^"])))
    yield from ([right] for right in rights if not alone.search(name_of_right(right)))


def user_without(process: str, rights: Collection[Right]) -> str:
    """The name of a ClickHouse user who lacks the rights."""
    return re.sub(r"\W+", "_", f"{process} without {', '.join(map(str, rights))}").strip("_").lower()


class Webhook:
    """A channel of notify: counts the messages of rules by their names."""

    def __init__(self) -> None:
        self.messages: Counter[str] = Counter()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        """The address of the channel."""
        app = web.Application()
        app.router.add_post("/", self._take)
        async with _serving(app) as port:
            yield f"http://127.0.0.1:{port}/"

    async def _take(self, request: web.Request) -> web.Response:
        self.messages[(await request.json())["rule"]["name"]] += 1
        return web.Response()


@asynccontextmanager
async def _serving(app: web.Application) -> AsyncIterator[int]:
    """The port on which an application runs."""
    runner = web.AppRunner(app, auto_decompress=False, handler_cancellation=True, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


class Way:
    """The way of one process to ClickHouse: it arrives there as `user`.

    The engine reads its users only when it starts, so a right is taken away by a user who has all the other
    ones. Every request is authenticated anew: the server refuses what this user lacks. Only a session (that
    of one insert) stays with its user.
    """

    def __init__(self, server: GrantedClickHouse, user: str) -> None:
        self._server, self._given = server, user
        self._sessions: dict[str, str] = {}
        self.user = user

    def take(self, rights: Collection[Right]) -> None:
        """Arrive as the user who lacks the rights."""
        self.user = user_without(self._given, rights)

    def give_back(self) -> None:
        """Arrive as the user with all documented rights."""
        self.user = self._given

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        """The address for the process."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._pass)
        async with aiohttp.ClientSession(auto_decompress=False) as self._session, _serving(app) as port:
            yield f"http://{self._given}:unused@127.0.0.1:{port}/svc"

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        session = request.query.get("session_id")
        user = self._sessions.setdefault(session, self.user) if session else self.user
        target, _, rest = self._server.address(user).removeprefix("http://").rpartition("@")
        password = target.partition(":")[2]
        headers = request.headers.copy()
        for name in ("Authorization", "X-ClickHouse-User", "X-ClickHouse-Key", "Host"):
            headers.popall(name, None)
        headers.update({"X-ClickHouse-User": user, "X-ClickHouse-Key": password})
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


class Ready(Struct, frozen=True):
    """The answer of `/readyz` and the missing rights of `/metrics`; a process that doesn't answer has status 0."""

    status: int = 0
    parts: dict[str, Any] = {}
    metric: frozenset[str] = frozenset()

    def names(self, rights: Collection[str]) -> bool:
        """Whether the part and the metric name the rights."""
        detail = self.parts.get("rights", {}).get("detail", "")
        return all(right in detail and right in self.metric for right in rights)

    @property
    def complete(self) -> bool:
        """Ready, without a missing right."""
        return self.status == 200 and not self.metric and not self.parts["rights"].get("detail")


class Seen(Struct, frozen=True):
    """The observations of a process while rights were missing.

    `named_after` and `back_after` are in seconds; `lines` are those that the process logged meanwhile.
    """

    process: Process
    rights: tuple[str, ...]
    status: int
    stops: tuple[str, ...]
    ended: bool
    named_after: float
    back_after: float
    lines: list[dict[str, Any]]

    @property
    def later(self) -> bool:
        """Whether what stops depends on when the process needs the right."""
        return self.process in LATER and bool(re.search(LATER[self.process], self.rights[0]))

    @property
    def loud(self) -> list[dict[str, Any]]:
        """Log lines that should not be there: unexpected errors, and tracebacks.

        The watch's errors are expected, which repeat every minute, and one that ends the process.
        """
        # asyncio reports a connection that aiokafka left open.
        lines = [line for line in self.lines if line["logger"] not in {"asyncio", "aiokafka.conn"}]
        errors = [line for line in lines if line["level"] in {"error", "critical"}]
        others = [line for line in errors if line["logger"] != "broker.rights_watch"]
        return [*others[self.ended :], *(line for line in lines if "exception" in line)]


class Figure(Struct):
    """How often a figure has grown, and for how many looks it has not."""

    grown: int = 0
    still: int = 0

    def look(self, *, grows: bool) -> None:
        """Note one look."""
        self.grown, self.still = self.grown + grows, 0 if grows else self.still + 1

    @property
    def stopped(self) -> bool:
        """Whether it has not grown for long; it may have done before, with what was under way."""
        return self.still >= _STILL_LOOKS

    @property
    def goes_on(self) -> bool:
        """Whether it has grown often enough, and still does."""
        return self.grown >= _GROWTHS and not self.stopped


class Rig:
    """The running service. `accepted` has the ids of all events that were answered with 202."""

    def __init__(
        self,
        kafka: SecuredKafka,
        clickhouse: GrantedClickHouse,
        ways: Mapping[str, Way],
        stack: Stack,
        supervisors: Mapping[str, Supervisor],
        project: CreatedProject,
        webhook: Webhook,
    ) -> None:
        self._kafka, self._clickhouse, self._ways = kafka, clickhouse, ways
        self._stack, self._supervisors, self._project = stack, supervisors, project
        self._webhook = webhook
        self._settings = KafkaSettings(kafka_bootstrap=kafka.bootstrap)
        self._issues: list[str] = []
        self.accepted: set[str] = set()
        self.figures: Counter[str] = Counter()
        self._done: Counter[str] = Counter()
        self._ending = False
        health = ("processors", "writer", "notify")
        ports = {name: stack.environ[f"SVC_{name.upper()}_HEALTH_PORT"] for name in health}
        self._urls = {name: f"http://127.0.0.1:{port}" for name, port in ports.items()} | {
            "edge": stack.ingest_url,
            "dashboard": stack.dashboard_url,
        }

    @asynccontextmanager
    async def flowing(self) -> AsyncIterator[None]:
        """Send events, read and change issues, and keep `figures` current."""
        sign_in = {"Authorization": aiohttp.encode_basic_auth("admin", self._stack.dashboard.admin_password)}
        async with AsyncExitStack() as stack:
            new_session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(5))
            self._session = await stack.enter_async_context(new_session)
            self._signed_in = await stack.enter_async_context(
                aiohttp.ClientSession(headers=sign_in, timeout=aiohttp.ClientTimeout(5))
            )
            ends = await stack.enter_async_context(reading(self._settings))
            ends.assign(self._partitions(Topic.OUTCOMES))
            work: dict[str, Callable[[], Awaitable[None]]] = {
                "send": self._send,
                "read": self._read,
                "change": self._change,
                "create": self._create,
                "rename": self._rename,
                "count": partial(self._count, ends),
            }
            # Three changes at the same time: each waits until it is confirmed.
            names = (*work, "change", "change")
            self._tasks = [asyncio.create_task(self._repeat(name, work[name])) for name in names]
            try:
                yield
            finally:
                # Each ends after its turn: a client of Kafka that is cancelled as it starts leaves its connection open.
                self._ending = True
                await asyncio.wait(self._tasks)
                for task in self._tasks:
                    task.result()

    async def _repeat(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        while not self._ending:
            with suppress(aiohttp.ClientError, TimeoutError, ProjectsUnavailable):
                await work()
            self._done[name] += 1
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _send(self) -> None:
        headers = {"Authorization": f"Bearer {self._project.token}", "Svc-Sdk": "rights/1"}
        rng, now = random.Random(), datetime.now(UTC)
        events = [renewed(event, now) for event in rng.choices(_SAMPLES, k=5)]
        events.append(renewed(rng.choice(_SAMPLES), now - _OLD))
        # An issue that nobody has seen, for notify.
        events[0] |= {"error": {**events[0]["error"], "type": f"New{rng.getrandbits(64)}"}}
        async with self._session.post(
            f"{self._stack.ingest_url}/v1/events:batch", json={"events": [*events, {}]}, headers=headers
        ) as answer:
            if answer.status == 202:
                self.accepted |= {str(UUID(event["id"]).int) for event in events}
                self.figures["accepts events"] += 1

    async def _read(self) -> None:
        path = f"/api/v1/projects/{self._project.id}/issues"
        async with self._signed_in.get(f"{self._stack.dashboard_url}{path}?limit=5") as answer:
            if answer.status == 200:
                self.figures["answers reads"] += 1
                self._issues = [issue["id"] for issue in (await answer.json())["issues"]]

    async def _change(self) -> None:
        if not self._issues:
            return
        url = f"{self._stack.dashboard_url}/api/v1/issues/{random.choice(self._issues)}"
        async with self._signed_in.patch(url, json={"status": random.choice(["resolved", "open"])}) as answer:
            if answer.status == 200:
                self.figures["changes issues"] += 1

    async def _create(self) -> None:
        url, body = f"{self._stack.dashboard_url}/api/v1/projects", {"name": "rights"}
        async with self._signed_in.post(url, json=body) as answer:
            if answer.status == 201:
                self.figures["changes projects"] += 1
        made = await create_project(self._settings, "rights")
        headers = {"Authorization": f"Bearer {made.token}", "Svc-Sdk": "rights/1"}
        url = f"{self._stack.ingest_url}/v1/events:batch"

        async def known() -> bool:
            async with self._session.post(url, json={"events": []}, headers=headers) as answer:
                return answer.status == 202

        with suppress(AssertionError):
            await eventually(known, 3)
            self.figures["learns new tokens"] += 1

    async def _rename(self) -> None:
        """Give the project's rule another name, which its messages have once notify knows it."""
        rule = NotificationRule("0" * 16, f"rule of {time.time_ns()}", ("created",), ("here",))
        async with ProjectStore(self._settings) as store:
            await store.edit(int(self._project.id), partial(set_notification_rules, rules=[rule]))

    async def _count(self, ends: Consumer) -> None:
        for figure, topic in (("sends events on", Topic.EVENTS), ("groups events", Topic.GROUPED)):
            self.figures[figure] = sum((await ends.end_offsets(self._partitions(topic))).values())
        for records in (await ends.getmany(timeout_ms=1)).values():
            self.figures["counts refused events"] += sum(b'"invalid"' in record.value for record in records)
        answer = await asyncio.to_thread(run_sql, self._clickhouse.url(), _FIGURES)
        self.figures |= dict(zip(FIGURES["writer"], map(int, answer.split()), strict=True))
        self.figures["sends messages"] = self._webhook.messages.total()
        self.figures["learns new rules"] = len(self._webhook.messages)

    def _partitions(self, topic: Topic) -> list[TopicPartition]:
        name = name_of(self._settings, topic)
        return [TopicPartition(name, p) for p in range(self._settings.topic_partitions)]

    async def ready(self, process: str) -> Ready:
        """What the process says of itself."""
        try:
            async with self._session.get(f"{self._urls[process]}/readyz") as answer:
                status, body = answer.status, await answer.json()
            async with self._session.get(f"{self._urls[process]}/metrics") as answer:
                metric = re.findall(
                    r'^svc_missing_rights{right="([^"]+)"} 1', await answer.text(), re.MULTILINE
                )
        except (aiohttp.ClientError, TimeoutError):
            return Ready()
        return Ready(status, body["parts"], frozenset(metric))

    def log(self, process: str) -> list[dict[str, Any]]:
        """The lines that the process has logged.

        Raises ValueError for a line that is not JSON, such as one of a bare traceback.
        """
        file = self._stack.data_dir / "log" / f"{process}.log"
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]

    async def whole(self) -> None:
        """Wait until every event that is accepted by now is stored, and none twice."""
        accepted = set(self.accepted)

        async def stored() -> Counter[str]:
            sql = f"SELECT id, count() FROM svc.events WHERE project_id = {self._project.id} GROUP BY id"
            rows = await asyncio.to_thread(run_sql, self._clickhouse.url(), sql)
            return Counter({event: int(count) for event, count in map(str.split, rows.splitlines())})

        async def arrived() -> bool:
            return accepted <= (await stored()).keys()

        await eventually(arrived, 90)
        assert set((await stored()).values()) == {1}

    async def seen_without(self, process: Process, rights: Sequence[Acl | Right]) -> Seen:
        """Take rights of a process away, look, give them back, and wait until all is as before."""
        acls = [right for right in rights if isinstance(right, Acl)]
        stored = [right for right in rights if isinstance(right, Right)]
        refused = await self._refused(process, stored)
        names = (*map(name_of_right, acls), *map(name_of_right, refused))
        restarts, lines = self._restarts(process), len(self.log(process))
        took = time.monotonic()
        await self._kafka.forbid(*acls)
        if stored:
            self._ways[process].take(stored)

        ready = Ready()

        async def named() -> bool:
            nonlocal ready
            ready = await self.ready(process)
            return ready.names(names)

        await eventually(named, _NAMED_SECONDS)
        named_after = time.monotonic() - took
        expected = by_right(documented()).get((process, _written(names[0])))
        stops = await self._stopped(process, expected.stops if expected else None)
        # One that has ended is there again.
        await eventually(named, _NAMED_SECONDS)
        status = ready.status
        gave, figures = time.monotonic(), self.figures.copy()
        await self._kafka.allow(*acls)
        if stored:
            self._ways[process].give_back()

        async def back() -> bool:
            grown = all(self.figures[figure] > figures[figure] for figure in FIGURES[process])
            return grown and (await self.ready(process)).complete

        await eventually(back, _BACK_SECONDS)
        back_after = time.monotonic() - gave
        ended = self._restarts(process) > restarts
        return Seen(process, names, status, stops, ended, named_after, back_after, self.log(process)[lines:])

    async def _refused(self, process: Process, rights: Sequence[Right]) -> list[Right]:
        """The rights that ClickHouse refuses to a user without them: some system tables may be read by everyone."""
        address = self._clickhouse.address(user_without(process, rights))

        def refused(right: Right) -> bool:
            return run_sql(address, f"CHECK GRANT {right}").strip() == "0"

        return [right for right in rights if await asyncio.to_thread(refused, right)]

    async def _stopped(self, process: Process, expected: Collection[str] | None) -> tuple[str, ...]:
        """The figures of the process that no longer grow.

        Each is read until it does as expected, which is to stop or to go on. On a busy machine a figure that
        goes on may be still for long, and one that stops may grow by the work under way. A figure that never
        does as expected counts as it is at the last reading.
        """
        figures = {figure: Figure() for figure in FIGURES[process]}

        def settled(figure: str) -> bool:
            seen = figures[figure]
            if expected is None:
                return seen.stopped or seen.goes_on
            return seen.stopped if figure in expected else seen.goes_on

        for _ in range(_MOST_LOOKS):
            last = self.figures.copy()
            await self._turned(WORKS[process])
            for figure, seen in figures.items():
                seen.look(grows=self.figures[figure] > last[figure])
            if all(map(settled, figures)):
                break
        return tuple(figure for figure, seen in figures.items() if not seen.goes_on)

    async def _turned(self, works: Sequence[str]) -> None:
        """Wait until each of these works is done once more.

        A figure shows nothing while no work makes it grow or no process counts it.
        """
        before = self._done.copy()
        await asyncio.sleep(_LOOK_SECONDS)

        def turned() -> bool:
            for task in self._tasks:
                if task.done():
                    task.result()
            return all(self._done[work] > before[work] for work in works)

        await eventually(turned, _TURN_SECONDS)

    def _restarts(self, process: str) -> int:
        return self._supervisors[process].statuses[process].restarts


_FIGURES: Final = """
    SELECT
        (SELECT count() FROM svc.events),
        (SELECT toUnixTimestamp64Milli(max(last_seen)) FROM svc.issues),
        (SELECT sum(count) FROM svc.outcomes)"""


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Rig]:
    """The service, ready, with events that flow; afterwards everything is stopped."""
    kafka = SecuredKafka(folder / "kafka", CACHE, RUNNING)
    users = {process: [f"GRANT {right}" for right in rights] for process, rights in STORE.items()}
    for process in RUNNING:
        for taken in rounds(process):
            stored = [right for right in taken if isinstance(right, Right)]
            left = [f"GRANT {right}" for right in STORE.get(process, ()) if right not in stored]
            users |= {user_without(process, stored): left} if stored else {}
    clickhouse = GrantedClickHouse(folder / "clickhouse", users)
    async with AsyncExitStack() as cleanup:
        for server in (kafka, clickhouse):
            cleanup.push_async_callback(asyncio.to_thread, server.stop)
        await asyncio.gather(asyncio.to_thread(kafka.start, 120), asyncio.to_thread(clickhouse.start, 120))
        settings = KafkaSettings(kafka_bootstrap=kafka.bootstrap)
        await ensure_topics(settings)
        await kafka.allow(*(acl for process in RUNNING for acl in acls(process, NEEDS[process])))
        await asyncio.to_thread(migrate, clickhouse.address("operator"))
        ways = {process: Way(clickhouse, process) for process in STORE}
        addresses = {process: await cleanup.enter_async_context(way.open()) for process, way in ways.items()}
        webhook = Webhook()
        channel = await cleanup.enter_async_context(webhook.open())
        stack = prepare(
            folder / "stack",
            CACHE,
            SVC_CLICKHOUSE_URL=addresses["writer"],
            SVC_GROUPED_EVENTS="true",
            SVC_KAFKA_SESSION_SECONDS="3",
            SVC_NOTIFY_CHANNELS=json.dumps({"here": {"webhook": channel}}),
            **kafka.environ("edge"),
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
        # Rights are lost sooner than a supervisor forgets the last one: its pauses would grow.
        supervisors = {child.name: Supervisor([child], restart_seconds=(0.5,)) for child in children}
        for supervisor in supervisors.values():
            cleanup.push_async_callback(supervisor.stop)
        project = await create_project(settings, "rights")
        await asyncio.gather(*(supervisor.start() for supervisor in supervisors.values()))
        rig = Rig(kafka, clickhouse, ways, stack, supervisors, project, webhook)
        await cleanup.enter_async_context(rig.flowing())
        await eventually(lambda: all(map(rig.figures.get, chain(*FIGURES.values()))), 120)
        yield rig


Round = tuple[Process, Sequence[Acl | Right]]
Phase = Sequence[Sequence[Round]]
"""Rounds that run at the same time, and one after the other: none of them hides what another one shows."""


def plan() -> dict[str, list[Phase]]:
    """All rounds, in two parts that run on servers of their own."""
    every = {process: [(process, rights) for rights in rounds(process)] for process in RUNNING}
    events = [one for one in every["edge"] if name_of_right(one[1][0]) == "Write on topic svc.events"]
    others = [one for one in every["edge"] if one not in events]
    return {
        "processors": [[every["processors"]]],
        "others": [[every["writer"], [*every["dashboard"], *others], every["notify"]], [events]],
    }


def one_of_each() -> list[Phase]:
    """A round for each process: three rights on Kafka, two on ClickHouse."""
    processors, writer, dashboard, edge, notify = (
        next((process, rights) for rights in rounds(process) if name_of_right(rights[0]) == name)
        for process, name in ONE_OF_EACH.items()
    )
    return [[[processors]], [[writer], [dashboard], [notify]], [[edge]]]


async def seen(folder: Path, phases: Sequence[Phase]) -> list[Seen]:
    """What is seen in each round. Raises AssertionError if an event is lost or doubled at the end."""
    found: list[Seen] = []
    async with running(folder) as rig:

        async def along(lane: Sequence[Round]) -> None:
            for process, rights in lane:
                found.append(await rig.seen_without(process, rights))

        for phase in phases:
            await asyncio.gather(*map(along, phase))
        await rig.whole()
    return found


def table(all_seen: Sequence[Seen]) -> str:
    """The rows of the document.

    Rights with the same observations share a row; those of `LATER` have a star.
    """
    rows: dict[tuple[str, str, str, str, bool], list[Seen]] = {}
    for one in sorted(all_seen, key=lambda one: (RUNNING.index(one.process), not one.stops)):
        works = [figure for figure in FIGURES[one.process] if figure not in one.stops]
        row = one.process, str(one.status), ", ".join(works), ", ".join(one.stops), one.later
        rows.setdefault(row, []).append(one)
    return "".join(
        f"| {process} | {_short(group)}{' *' if later else ''} | {status} | {works} | {stops} | {_rounded(group)} |\n"
        for (process, status, works, stops, later), group in rows.items()
    )


def _short(group: Sequence[Seen]) -> str:
    by_kind: dict[str, list[str]] = {}
    for right in (right for one in group for right in one.rights):
        kind, _, name = _written(right).rpartition(" ")
        by_kind.setdefault(kind, []).append(name)
    return "; ".join(f"{kind} {', '.join(names)}" for kind, names in by_kind.items())


def _written(right: str) -> str:
    """A right as the document writes it."""
    kind, _, name = right.replace(" ON ", " on ").rpartition(" ")
    return f"{kind.removesuffix(' topic').removesuffix(' on')} `{name.removeprefix('svc.')}`"


def _rounded(group: Sequence[Seen]) -> str:
    return f"{5 * math.ceil(max(one.back_after for one in group) / 5)} s"


def documented() -> list[str]:
    """The rows of the document."""
    text = PAGE.read_text(encoding="utf-8")
    return text.partition(BEGIN)[2].partition(END)[0].splitlines()[2:]


class Documented(Struct, frozen=True):
    """What rows say of a process without a right."""

    status: str
    goes_on: tuple[str, ...]
    stops: tuple[str, ...]


def by_right(rows: Sequence[str]) -> dict[tuple[str, str], Documented]:
    """What rows say, by process and right; nothing of those for which what stops depends on the moment."""
    rows_of = {}
    for row in rows:
        process, rights, status, goes_on, stops, _ = row.removeprefix("| ").removesuffix(" |").split(" | ")
        if rights.endswith(" *"):
            continue
        for part in rights.split("; "):
            kind, _, names = part.partition(" `")
            for name in f"`{names}".split(", "):
                rows_of[process, f"{kind} {name}"] = Documented(status, _listed(goes_on), _listed(stops))
    return rows_of


def _listed(figures: str) -> tuple[str, ...]:
    return tuple(filter(None, figures.strip().split(", ")))


async def write() -> None:
    """Write the rows of the document, from a run of everything."""
    with TemporaryDirectory() as folder:
        all_seen = [one for name, phases in plan().items() for one in await seen(Path(folder) / name, phases)]
    rows = table(all_seen)
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}{_HEAD}{rows}{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(write())
