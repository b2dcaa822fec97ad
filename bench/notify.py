"""`python -m bench.notify`: how soon a new issue is a message, from the answer 202 until a webhook's receiver has it.

Three loads, one after another: a new issue each 200 ms on an otherwise quiet system; bursts of 50 new issues in one request
with silence between, of which the last message counts; single ones again while another project sends `--rate` events a second.
Generator and receiver run in one process on the machine of the system: the figures are upper bounds.
"""

import asyncio
import json
import logging
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import aiohttp
import click
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from bench.chaos import proof
from bench.chaos.__main__ import prepare
from bench.chaos.load import Load
from bench.chaos.receiver import SECRET, Receiver
from bench.recovery import SteadyLoad
from cli.demo.sample_events import load_samples
from cli.projects import CreatedProject, create_project
from control.project_edits import set_notification_rules
from control.project_store import ProjectStore
from local.stack import Stack
from local.supervisor import Supervisor
from schemas.environment import load
from schemas.ids import hex64, issue_id, uuid7
from schemas.notifications import NotificationRule
from schemas.settings import MigrateSettings
from schemas.times import iso, to_ms

RULE = NotificationRule("n" * 16, "new issues", ("created",), ("hook",))
BURST = 50
EACH_SECONDS = 0.2
LOOK_SECONDS = 0.05
SILENT_SECONDS = 2.0
"""Between a burst's last message and the next burst."""
SETTLE_SECONDS = 5.0
"""From the start of the load until the first probe."""
LATE_SECONDS = 120.0
TARGET_SECONDS = 10.0


class Delays(Struct, frozen=True):
    """Seconds from accepted to arrived under one load: percentiles of `count` messages."""

    load: str
    count: int
    p50: float
    p99: float
    most: float


def delays_of(load: str, seconds: Sequence[float]) -> Delays:
    """The percentiles of at least one delay."""
    ordered = sorted(seconds)
    p50, p99 = (ordered[int(len(ordered) * share)] for share in (0.5, 0.99))
    return Delays(load, len(ordered), round(p50, 2), round(p99, 2), round(ordered[-1], 2))


class Probe:
    """Posts new issues, and knows when each was accepted and its message arrived (`time.monotonic`)."""

    def __init__(
        self, session: aiohttp.ClientSession, project: CreatedProject, store: proof.Store, posts: Receiver
    ) -> None:
        self._session = session
        self._project = project
        self._store = store
        self._posts = posts
        self._numbers = count()
        self._accepted: dict[str, float] = {}

    async def post(self, issues: int) -> list[str]:
        """Post so many new issues in one request; returns the ids of their events. Raises RuntimeError if one is refused."""
        events = [self._event() for _ in range(issues)]
        body = {"events": events}
        async with self._session.post("/v1/events:batch", json=body) as answer:
            if answer.status != 202 or (await answer.json())["rejected"]:
                raise RuntimeError(f"{answer.status}: {await answer.text()}")
        now = time.monotonic()
        ids = [event["id"] for event in events]
        self._accepted |= dict.fromkeys(ids, now)
        return ids

    async def waits(self, ids: Sequence[str]) -> list[float]:
        """Seconds that the message of each took, once all have arrived. Raises TimeoutError."""
        async with asyncio.timeout(LATE_SECONDS):
            while True:
                issues, arrived = await self._issues(ids), self._arrived()
                if len(issues) == len(ids) and arrived.keys() >= set(issues.values()):
                    return [arrived[issues[event]] - self._accepted[event] for event in ids]
                await asyncio.sleep(LOOK_SECONDS)

    def _arrived(self) -> dict[str, float]:
        return {
            cause["issue"]["id"]: self._posts.arrived[key]
            for key, message in self._posts.messages.items()
            for cause in message["causes"]
        }

    async def _issues(self, ids: Sequence[str]) -> dict[str, str]:
        """The issue of each stored event."""
        sql = f"SELECT id, fingerprint FROM events WHERE project_id = {self._project.id}"
        rows = await asyncio.to_thread(self._store.rows, sql)
        project = int(self._project.id)
        known = {str(UUID(int=number)): hex64(issue_id(project, one)) for number, one in rows}
        return {event: known[event] for event in ids if event in known}

    def _event(self) -> dict[str, Any]:
        # Letters alone: digits of a name don't tell errors apart.
        number = f"{next(self._numbers):06d}".translate(str.maketrans("0123456789", "abcdefghij"))
        now = to_ms(datetime.now(UTC))
        stack = [{"file": "shop.py", "function": f"pay_{number}", "line": 7, "inApp": True}]
        error = {"type": f"Probe{number.title()}Error", "message": "the bank does not answer", "stack": stack}
        sent = {"id": str(uuid7(now)), "timestamp": iso(now), "kind": "error", "platform": "python"}
        origin = {
            "device": {"os": "other", "osVersion": "6"},
            "app": {"version": "1.0.0"},
            "user": {"id": "u"},
            "tags": {},
        }
        return sent | origin | {"release": "shop@1.0.0+1", "environment": "bench", "error": error}


@click.command()
@click.option("--seconds", default=60.0, show_default=True, help="Of each load with single issues.")
@click.option("--bursts", default=10, show_default=True)
@click.option(
    "--rate", default=5_000, show_default=True, help="Events a second beside them; 0: without this load."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--cache", type=click.Path(path_type=Path), default=Path(".cache"), help="Kafka's jars.")
def notify(seconds: float, bursts: int, rate: int, as_json: bool, cache: Path) -> None:
    """Measure how soon a new issue is a message."""
    logging.getLogger("local").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        found = asyncio.run(measure(Path(folder), cache, seconds, bursts, rate))
    if as_json:
        click.echo(
            json.dumps([{name: getattr(one, name) for name in Delays.__struct_fields__} for one in found])
        )
        return
    table = Table("load", "messages", "p50", "p99", "most", f"p99 at most {TARGET_SECONDS:.0f} s")
    for one in found:
        figures = (f"{one.p50:.2f} s", f"{one.p99:.2f} s", f"{one.most:.2f} s")
        table.add_row(one.load, str(one.count), *figures, "yes" if one.p99 <= TARGET_SECONDS else "NO")
    Console(highlight=False).print(table)


async def measure(folder: Path, cache: Path, seconds: float, bursts: int, rate: int) -> list[Delays]:
    """One run on a fresh stack."""
    async with AsyncExitStack() as cleanup:
        posts = await cleanup.enter_async_context(Receiver().listening())
        channels = json.dumps({"hook": {"webhook": posts.url, "secret": SECRET}})
        stack = prepare(folder, cache, SVC_NOTIFY_CHANNELS=channels)
        supervisor = Supervisor(stack.children())
        cleanup.push_async_callback(supervisor.stop)
        await supervisor.start()
        settings = load(MigrateSettings, stack.environ)
        busy, project = [
            await create_project(settings, name, rate_limit=1_000_000) for name in ("busy", "probe")
        ]
        async with ProjectStore(settings) as projects:
            await projects.edit(int(project.id), lambda known: set_notification_rules(known, [RULE]))
        store = proof.Store(settings)
        cleanup.callback(store.close)
        headers = {"Authorization": f"Bearer {project.token}", "Svc-Sdk": "bench/1"}
        session = await cleanup.enter_async_context(aiohttp.ClientSession(stack.ingest_url, headers=headers))
        await _known(session)
        probe = Probe(session, project, store, posts)
        # The first message of all takes longer: connections open, rules are read.
        await probe.waits(await probe.post(1))
        found = [await _singles("quiet", probe, seconds)]
        found.append(delays_of(f"last of {BURST} at once", [await _burst(probe) for _ in range(bursts)]))
        click.echo(f"{found}", err=True)
        if rate:
            beside = asyncio.create_task(_load(stack, busy, rate))
            cleanup.callback(beside.cancel)
            await asyncio.sleep(SETTLE_SECONDS)
            found.append(await _singles(f"beside {rate:,} events/s", probe, seconds))
        return found


async def _known(session: aiohttp.ClientSession) -> None:
    async with asyncio.timeout(LATE_SECONDS):
        while True:
            async with session.post("/v1/events:batch", json={"events": []}) as answer:
                if answer.status == 202:
                    return
            await asyncio.sleep(LOOK_SECONDS)


async def _singles(name: str, probe: Probe, seconds: float) -> Delays:
    ids: list[str] = []
    begin = time.monotonic()
    for number in range(int(seconds / EACH_SECONDS)):
        await asyncio.sleep(max(0.0, begin + number * EACH_SECONDS - time.monotonic()))
        ids += await probe.post(1)
    return delays_of(name, await probe.waits(ids))


async def _burst(probe: Probe) -> float:
    slowest = max(await probe.waits(await probe.post(BURST)))
    await asyncio.sleep(SILENT_SECONDS)
    return slowest


async def _load(stack: Stack, project: CreatedProject, rate: int) -> None:
    stream = Load(load_samples(), 1, 0.0, timedelta(seconds=60))
    await SteadyLoad(stack.ingest_url, project, stream, rate).run()


if __name__ == "__main__":
    notify()
