"""Workers of one kind that come and go: each under a supervisor of its own, which starts it again after any death but the last."""

import asyncio
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from local.errors import LocalError
from local.ports import free_port
from local.probes import is_ready
from local.supervisor import Child, Status, Supervisor

MOST_FAILURES = 20
"""A worker that ends so often before it was ready once doesn't die of what is done to it."""


def colleagues(first: Child, count: int, worker: str, port: str) -> list[Child]:
    """`count` workers like the first, which is one of them; `worker` and `port` are the variables that tell them apart."""
    return [first, *(_colleague(first, number, worker, port) for number in range(2, count + 1))]


def _colleague(first: Child, number: int, worker: str, port: str) -> Child:
    name, chosen = f"{first.name}{number}", free_port()
    return replace(
        first,
        name=name,
        log=first.log.with_name(f"{name}.log"),
        env=dict(first.env or {}) | {worker: str(number), port: str(chosen)},
        ready=partial(is_ready, f"http://127.0.0.1:{chosen}"),
    )


class Worker:
    """One child, from the moment it is added until it is taken away."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._supervisor = Supervisor([child])
        self._failed = 0
        self._leaving = False
        self._starting = asyncio.create_task(self._start(), name=f"start {child.name}")

    @property
    def status(self) -> Status:
        """What the worker is doing."""
        return self._supervisor.statuses[self._child.name]

    @property
    def restarts(self) -> int:
        """How often it was started again."""
        return self._failed + self.status.restarts

    async def ready(self) -> None:
        """Return once it was ready for the first time."""
        await self._starting

    async def leave(self, how: signal.Signals) -> None:
        """End it by `how` and leave it ended: SIGKILL, or SIGTERM with the grace that every child has."""
        self._leaving = True
        self._supervisor.request_stop()
        if how is signal.SIGKILL:
            self._supervisor.request_stop()
        with suppress(LocalError, OSError):
            await self._starting
        await self._supervisor.stop()

    async def _start(self) -> None:
        while True:
            try:
                return await self._supervisor.start()
            except (LocalError, OSError):
                # Killed on its way up, which a supervisor takes for a fault in what it was told to start.
                if self._leaving:
                    return None
                self._failed += 1
                if self._failed > MOST_FAILURES:
                    raise
                self._supervisor = Supervisor([self._child])


class Fleet:
    """The workers of one kind: up to one of each child. Those there are run until they are taken away."""

    def __init__(self, kind: str, children: Sequence[Child]) -> None:
        self.kind = kind
        self._children = {child.name: child for child in children}
        self._workers: dict[str, Worker] = {}
        self._restarts = 0
        self.unwilling: list[str] = []
        """Who was asked to stop and had to be killed."""

    @property
    def present(self) -> list[str]:
        """Names of the workers there are."""
        return [name for name in self._children if name in self._workers]

    @property
    def absent(self) -> list[str]:
        """Names of the workers that could be added."""
        return [name for name in self._children if name not in self._workers]

    @property
    def statuses(self) -> Mapping[str, Status]:
        """What each worker is doing."""
        return {name: self._workers[name].status for name in self.present}

    @property
    def restarts(self) -> int:
        """How often workers were started again."""
        return self._restarts + sum(worker.restarts for worker in self._workers.values())

    def member(self, name: str) -> str:
        """What the worker calls itself in its group."""
        return name.removeprefix(self.kind) or "0"

    def add(self, name: str) -> Worker:
        """Start an absent worker."""
        worker = self._workers[name] = Worker(self._children[name])
        return worker

    async def remove(self, name: str, how: signal.Signals) -> None:
        """Take a worker away; it is no longer present from the call on."""
        worker = self._workers.pop(name)
        await worker.leave(how)
        self._restarts += worker.restarts
        if how is signal.SIGTERM and worker.status.detail:
            self.unwilling.append(name)

    async def stop(self) -> None:
        """Take all away."""
        await asyncio.gather(*(self.remove(name, signal.SIGTERM) for name in self.present))
