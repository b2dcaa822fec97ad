"""A varying number of workers of one kind; each is restarted after a kill."""

import asyncio
import random
import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from broker.waiting import pause
from local.child import Child
from local.ports import free_port
from local.process_groups import ProcessGroup, spawn
from local.readiness import is_ready
from runtime.process import end, kill
from runtime.supervisor import Status

RESTART_SECONDS = 0.2
POLL_SECONDS = 0.1


def worker_children(first: Child, count: int, worker: str, port: str) -> list[Child]:
    """`count` workers, including the first; the variables `worker` and `port` distinguish them."""
    return [first, *(_worker_child(first, number, worker, port) for number in range(2, count + 1))]


def edge_children(first: Child, count: int) -> list[Child]:
    """`count` edges, including the first; each has a separate port and data folder."""
    more = []
    for number in range(2, count + 1):
        folder = first.log.parents[1] / f"edge{number}"
        folder.mkdir(exist_ok=True)
        more.append(_another(first, number, "SVC_INGEST_PORT", {"SVC_DATA_DIR": str(folder)}))
    return [first, *more]


def _worker_child(first: Child, number: int, worker: str, port: str) -> Child:
    return _another(first, number, port, {worker: str(number)})


def _another(first: Child, number: int, port: str, given: Mapping[str, str]) -> Child:
    name, chosen = f"{first.name}{number}", free_port()
    return replace(
        first,
        name=name,
        log=first.log.with_name(f"{name}.log"),
        env={**(first.env or {}), **given, port: str(chosen)},
        ready=partial(is_ready, f"http://127.0.0.1:{chosen}"),
    )


def of_either(child: Child, versions: Sequence[Path], rng: random.Random) -> Child:
    """A child that is started from one of several checkouts of the project, another one each time."""

    def command() -> list[str]:
        return [
            "env",
            *(f"{name}={value}" for name, value in of_version(rng.choice(versions)).items()),
            *child.command(),
        ]

    return replace(child, command=command)


def of_version(checkout: Path) -> dict[str, str]:
    """The variables with which Python takes a checkout's modules instead of the present folder's."""
    return {"PYTHONPATH": str(checkout), "PYTHONSAFEPATH": "1"}


class Worker:
    """A child from its addition to its removal.

    It is restarted immediately after each kill: with the growing back-off of `svc up`'s supervisor, most kills of
    a long run would find no process.
    """

    def __init__(self, child: Child) -> None:
        self._child = child
        self._ready = asyncio.Event()
        self._leaving = asyncio.Event()
        self._process: ProcessGroup | None = None
        self.status = Status(child.name)
        self._keeping = asyncio.create_task(self._keep(), name=f"keep {child.name}")

    async def ready(self) -> None:
        """Wait until it was ready once. Raises TimeoutError after the child's `start_seconds`."""
        async with asyncio.timeout(self._child.start_seconds):
            await self._ready.wait()

    async def leave(self, how: signal.Signals) -> bool:
        """End it for good with the signal `how`; false if it had to be killed after its grace period."""
        self._leaving.set()
        await self._keeping
        ended = True
        if self._process is not None and how is signal.SIGKILL:
            await asyncio.to_thread(kill, self._process)
        elif self._process is not None:
            ended = await asyncio.to_thread(end, self._process, self._child.grace_seconds)
        self.status.state, self.status.pid = "stopped", None
        return ended

    async def _keep(self) -> None:
        while not self._leaving.is_set():
            command = await asyncio.to_thread(self._child.command)
            process = self._process = spawn(
                command, log=self._child.log, env=self._child.env, nice=self._child.nice
            )
            self.status.state, self.status.pid = "starting", process.pid
            await self._watch(process)
            if process.poll() is not None:
                kill(process)
                self.status.state, self.status.pid = "restarting", None
                self.status.restarts += 1
                await self._pause(RESTART_SECONDS)

    async def _watch(self, process: ProcessGroup) -> None:
        """Wait until the process has ended or is to be removed."""
        while process.poll() is None and not self._leaving.is_set():
            if self.status.state == "starting" and await asyncio.to_thread(self._child.ready):
                self.status.state = "ready"
                self._ready.set()
            await self._pause(POLL_SECONDS)

    async def _pause(self, seconds: float) -> None:
        await pause(self._leaving, seconds)


class Fleet:
    """The workers of one kind: at most one for each child, running until removed."""

    def __init__(self, kind: str, children: Sequence[Child]) -> None:
        self.kind = kind
        self._children = {child.name: child for child in children}
        self._workers: dict[str, Worker] = {}
        self._restarts = 0
        self.killed_after_grace: list[str] = []
        """Workers that didn't stop on SIGTERM."""

    @property
    def environments(self) -> list[Mapping[str, str]]:
        """The environment of each worker that there may be."""
        return [child.env or {} for child in self._children.values()]

    @property
    def present(self) -> list[str]:
        """Names of the current workers."""
        return [name for name in self._children if name in self._workers]

    @property
    def absent(self) -> list[str]:
        """Names of the workers that could be added."""
        return [name for name in self._children if name not in self._workers]

    @property
    def statuses(self) -> Mapping[str, Status]:
        """The status of each worker."""
        return {name: self._workers[name].status for name in self.present}

    @property
    def restarts(self) -> int:
        """The number of restarts."""
        return self._restarts + sum(worker.status.restarts for worker in self._workers.values())

    def member(self, name: str) -> str:
        """The worker's name in its consumer group."""
        return name.removeprefix(self.kind) or "0"

    def add_worker(self, name: str) -> Worker:
        """Start an absent worker."""
        worker = self._workers[name] = Worker(self._children[name])
        return worker

    async def remove_worker(self, name: str, how: signal.Signals) -> None:
        """Remove a worker; it is not present from the call on."""
        worker = self._workers.pop(name)
        ended = await worker.leave(how)
        self._restarts += worker.status.restarts
        if not ended:
            self.killed_after_grace.append(name)

    async def stop(self) -> None:
        """Remove all workers."""
        await asyncio.gather(*(self.remove_worker(name, signal.SIGTERM) for name in self.present))
