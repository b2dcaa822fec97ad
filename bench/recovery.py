"""`python -m bench.recovery`: how soon events can be queried after a fault, under steady load on real servers.

Four requests a second send one event each. An event counts from its answer
202, or from the end of the fault where that came later, until it can be queried; a fault's recovery time is
that of its slowest event.
"""

import asyncio
import logging
import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any
from uuid import UUID

import click
from rich.console import Console
from rich.table import Table

from bench.chaos import proof
from bench.chaos.__main__ import fleets_of
from bench.chaos.chaos_load import Load
from bench.chaos.fleet import Fleet
from bench.servers import cache_option, folder_option, kept_or_temporary, prepare, supervised
from cli.demo.sample_events import load_samples
from cli.projects import CreatedProject, create_project
from cli.send.batch_sender import Sender
from cli.send.send_batches import batches
from local.local_stack import Stack
from runtime.supervisor import Supervisor
from schemas.environment import load
from schemas.settings import MigrateSettings

PROBE_SECONDS = 0.25
LOOK_SECONDS = 0.1
CALM_SECONDS = 3.0
"""Between two faults, events are queryable within this time."""
CALM_PROBES = 12
WATCHED_SECONDS = 30.0
"""Events sent this long after the end of a fault are looked at too."""
LONGEST_SECONDS = 900.0
OUTAGE_SECONDS = 60.0
BEHIND_EVENTS = 200_000
FAULTS = (
    "kill edge",
    "kill processors",
    "kill writer",
    "kill clickhouse",
    "kill kafka",
    "restart processors",
    "restart writer",
    "clickhouse outage",
    "writer behind",
)


class Probe:
    """Sends single events and looks when each can be queried."""

    def __init__(self, url: str, project: CreatedProject, store: proof.Store, stream: Load) -> None:
        self._url = url
        self._project = project
        self._store = store
        self._stream = stream
        self.accepted: dict[UUID, float] = {}
        self.queryable: dict[UUID, float] = {}

    async def watch_latest(self) -> None:
        """Send and look until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._look())
            while True:
                group.create_task(self._send())
                await asyncio.sleep(PROBE_SECONDS)

    def waiting(self, since: float, until: float) -> list[UUID]:
        """Events accepted in this time that can't be queried yet."""
        return [
            event
            for event, at in self.accepted.items()
            if since <= at <= until and event not in self.queryable
        ]

    def latest(self, count: int) -> list[float]:
        """Seconds until the last events could be queried, up to now for those that can't be yet."""
        now = time.monotonic()
        return [self.queryable.get(event, now) - at for event, at in [*self.accepted.items()][-count:]]

    async def _send(self) -> None:
        known = set(self._stream.ids)
        lines = [*self._stream.events(1)]
        (event,) = self._stream.ids - known
        sender = Sender(self._url, self._project.token, sdk="recovery/1", retry_for=LONGEST_SECONDS)
        await sender.send(batches(lines))
        self.accepted[event] = time.monotonic()

    async def _look(self) -> None:
        sql = f"SELECT id FROM events WHERE project_id = {self._project.id}"
        while True:
            # The server is unavailable in some of the faults.
            with suppress(Exception):
                rows = await asyncio.to_thread(self._store.rows, sql)
                now = time.monotonic()
                for (number,) in rows:
                    self.queryable.setdefault(UUID(int=number), now)
            await asyncio.sleep(LOOK_SECONDS)


def delays(
    accepted: Mapping[UUID, float], queryable: Mapping[UUID, float], begin: float, end: float
) -> list[float]:
    """Seconds until events could be queried, counted from the end of the fault where that came later.

    `begin` and `end` are the fault's; events that were queryable before it, or came long after it, are left
    out.
    """
    return sorted(
        max(0.0, queryable[event] - max(at, end))
        for event, at in accepted.items()
        if at <= end + WATCHED_SECONDS and queryable[event] >= begin
    )


class Faults:
    """Causes faults one by one: `cause` returns the time of a fault's end."""

    def __init__(
        self,
        supervisor: Supervisor,
        fleets: Mapping[str, Fleet],
        load: "SteadyLoad",
    ) -> None:
        self._supervisor = supervisor
        self._fleets = fleets
        self._load = load

    async def cause(self, fault: str) -> float:
        """Cause a fault by its name."""
        what, _, name = fault.rpartition(" ")
        causes: dict[str, Callable[[str], Awaitable[float]]] = {"kill": self._kill, "restart": self._restart}
        return await {**causes, "clickhouse": self._outage, "writer": self._behind}[what](name)

    async def _kill(self, kind: str) -> float:
        status = (
            self._fleets[kind].statuses[kind] if kind in self._fleets else self._supervisor.statuses[kind]
        )
        assert status.pid is not None
        os.kill(status.pid, signal.SIGKILL)
        end = time.monotonic()
        if kind in self._fleets:
            return end
        # The server's own recovery is part of its fault.
        while status.state == "ready":
            await asyncio.sleep(LOOK_SECONDS)
        while status.state != "ready":
            await asyncio.sleep(LOOK_SECONDS)
        return time.monotonic()

    async def _restart(self, kind: str) -> float:
        """Restart each worker in turn, as an upgrade does. The fault ends with the last worker's end."""
        fleet, end = self._fleets[kind], 0.0
        for name in fleet.present:
            end = time.monotonic()
            await fleet.remove_worker(name, signal.SIGTERM)
            await fleet.add_worker(name).ready()
        return end

    async def _outage(self, _name: str) -> float:
        pid = self._supervisor.statuses["clickhouse"].pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(OUTAGE_SECONDS)
        finally:
            os.kill(pid, signal.SIGCONT)
        return time.monotonic()

    async def _behind(self, _name: str) -> float:
        fleet = self._fleets["writer"]
        names, before = fleet.present, self._load.accepted
        await asyncio.gather(*(fleet.remove_worker(name, signal.SIGTERM) for name in names))
        self._load.unlimited = True
        while self._load.accepted - before < BEHIND_EVENTS:
            await asyncio.sleep(LOOK_SECONDS)
        self._load.unlimited = False
        for name in names:
            fleet.add_worker(name)
        return time.monotonic()


class SteadyLoad:
    """Sends `rate` events a second, or as many as possible while `unlimited`."""

    def __init__(self, url: str, project: CreatedProject, stream: Load, rate: int) -> None:
        self._sender = Sender(url, project.token, sdk="recovery/1", retry_for=LONGEST_SECONDS)
        self._stream = stream
        self._rate = rate
        self.unlimited = False

    @property
    def accepted(self) -> int:
        """Events answered 202."""
        return self._sender.report.accepted

    async def send_steadily(self) -> None:
        """Send until cancelled."""
        size = max(100, self._rate // 2)
        due = time.monotonic()
        while True:
            await self._sender.send(batches(self._stream.events(size)))
            # Events that a fault held up are skipped, not sent later: the rate is also a maximum.
            due = max(due + size / self._rate, time.monotonic() - 1)
            if not self.unlimited:
                await asyncio.sleep(max(0.0, due - time.monotonic()))


@click.command()
@click.option("--rate", default=4_000, show_default=True, help="Events a second.")
@click.option(
    "--workers", type=click.IntRange(1), default=1, show_default=True, help="Processors, and writers."
)
@click.option(
    "--fault", "faults", multiple=True, type=click.Choice(FAULTS), help="Only these faults; default: all."
)
@folder_option
@cache_option
def recovery(cache: Path, data_dir: Path | None, faults: tuple[str, ...], **options: Any) -> None:
    """Measure how soon events can be queried after each fault."""
    logging.getLogger("local").setLevel(logging.ERROR)
    with kept_or_temporary(data_dir) as folder:
        asyncio.run(measure(prepare(folder, cache), faults or FAULTS, **options))


async def measure(stack: Stack, faults: Sequence[str], *, rate: int, workers: int) -> None:
    """Cause the faults one after another and print the table."""
    console = Console(highlight=False)
    fleets = fleets_of(stack, workers)
    async with AsyncExitStack() as cleanup:
        others = [child for child in stack.children() if child.name not in fleets]
        supervisor = await cleanup.enter_async_context(supervised(others))
        for fleet in fleets.values():
            cleanup.push_async_callback(fleet.stop)
        await asyncio.gather(
            *(fleet.add_worker(name).ready() for fleet in fleets.values() for name in fleet.absent)
        )
        settings = load(MigrateSettings, stack.environ)
        busy, probed = [
            await create_project(settings, name, rate_limit=1_000_000) for name in ("busy", "probe")
        ]
        store = proof.Store(settings)
        cleanup.callback(store.close)
        streams = [Load(load_samples(), seed, 0.0, timedelta(seconds=60)) for seed in (1, 2)]
        steady = SteadyLoad(stack.ingest_url, busy, streams[0], rate)
        probe = Probe(stack.ingest_url, probed, store, streams[1])
        running = [asyncio.create_task(steady.send_steadily()), asyncio.create_task(probe.watch_latest())]
        cleanup.callback(lambda: [task.cancel() for task in running])
        table = Table("fault", "lasted", "slowest event", "median event")
        injector = Faults(supervisor, fleets, steady)
        for fault in faults:
            await calm(probe)
            begin = time.monotonic()
            end = await injector.cause(fault)
            await asyncio.sleep(max(0.0, end + WATCHED_SECONDS - time.monotonic()))
            watched = time.monotonic()
            while probe.waiting(begin - WATCHED_SECONDS, watched):
                await asyncio.sleep(LOOK_SECONDS)
            times = delays(probe.accepted, probe.queryable, begin, end)
            row = (fault, f"{end - begin:.1f} s", f"{times[-1]:.1f} s", f"{median(times):.1f} s")
            console.print(*row, sep="  ")
            table.add_row(*row)
        console.print(table)


async def calm(probe: Probe) -> None:
    """Wait until events are queryable soon."""
    while len(latest := probe.latest(CALM_PROBES)) < CALM_PROBES or max(latest) > CALM_SECONDS:
        await asyncio.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    recovery()
