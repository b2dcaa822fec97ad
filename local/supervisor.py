"""Supervises child processes: starts them in order, restarts them after they die, stops them in reverse order."""

import asyncio
import logging
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from broker.waiting import pause
from local.process import end, failed_start, kill_group, spawn
from schemas.errors import CannotRun

log = logging.getLogger(__name__)

POLL_SECONDS = 0.1
BACKOFF_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
CHECK_SECONDS = 2.0
UNREADY_CHECKS = 3  # in a row: a single check may fail on a busy machine
STEADY_SECONDS = 60.0
"""The backoff is reset after a child ran this long."""


@dataclass(frozen=True)
class Child:
    """A command and its readiness check.

    `command` is called in a thread before each start, may do preparations, and returns the argument vector. `ready` is
    called in a thread and may block for seconds. A child that isn't ready after `start_seconds` is ended, unless its
    `progress`, called likewise, has changed meanwhile. A child with `once` exits by itself; exit status 0 makes it ready.
    `data` is its data folder. `nice` lowers its priority.
    """

    name: str
    command: Callable[[], Sequence[str]]
    log: Path
    ready: Callable[[], bool] = lambda: True
    env: Mapping[str, str] | None = None
    once: bool = False
    start_seconds: float = 60.0
    progress: Callable[[], str] = str
    grace_seconds: float = 30.0
    data: Path | None = None
    nice: int = 0


@dataclass
class Status:
    """A child's displayed status.

    `state` is waiting, preparing, starting, ready, unready, done, restarting, stopping or stopped.
    """

    name: str
    state: str = "waiting"
    pid: int | None = None
    restarts: int = 0
    detail: str = ""


class Supervisor:
    """Runs children; calls `changed` with a child's status at each change."""

    def __init__(
        self,
        children: Sequence[Child],
        changed: Callable[[Status], None] = lambda _: None,
        check_seconds: float = CHECK_SECONDS,
    ) -> None:
        self.children = tuple(children)
        self.statuses = {child.name: Status(child.name) for child in children}
        self.stopping = asyncio.Event()
        self._changed = changed
        self._check_seconds = check_seconds
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._keepers: dict[str, asyncio.Task[None]] = {}
        self._hurry = False

    def request_stop(self) -> None:
        """Begin to stop; a second call kills the children that still run."""
        if self.stopping.is_set():
            self._hurry = True
            for process in self._processes.values():
                if process.poll() is None:
                    process.kill()
        self.stopping.set()

    async def start(self) -> None:
        """Start the children, each after the previous one is ready; return early on a stop request.

        Raises CannotRun or OSError if one doesn't start; call `stop` in that case too.
        """
        for child in self.children:
            if self.stopping.is_set():
                return
            await self._launch(child)
            if not child.once:
                self._keepers[child.name] = asyncio.create_task(self._keep(child), name=f"keep {child.name}")

    async def stop(self) -> None:
        """Stop all children in reverse order and wait for their end."""
        self.stopping.set()
        await asyncio.gather(*self._keepers.values())
        for child in reversed(self.children):
            process = self._processes.get(child.name)
            if process and not (child.once and process.poll() is not None):
                self._set(child, "stopping")
                grace = 0.0 if self._hurry else child.grace_seconds
                in_time = await asyncio.to_thread(end, process, grace)
                self._set(child, "stopped", "" if in_time else f"killed after {grace:.0f} s")

    async def _launch(self, child: Child) -> None:
        self._set(child, "preparing")
        command = await asyncio.to_thread(child.command)
        if self.stopping.is_set():
            return
        process = self._processes[child.name] = spawn(command, log=child.log, env=child.env, nice=child.nice)
        self._set(child, "starting")
        try:
            await self._await_ready(child, process)
        except BaseException:
            kill_group(process)
            raise
        if not self.stopping.is_set():
            self._set(child, "done" if child.once else "ready")

    async def _await_ready(self, child: Child, process: subprocess.Popen[bytes]) -> None:
        limit, progress = time.monotonic() + child.start_seconds, ""
        while not self.stopping.is_set():
            code = process.poll()
            if child.once and code == 0:
                return
            if code is not None:
                raise failed_start(child.name, f"ended with {code} while starting", child.log, child.data)
            if not child.once and await asyncio.to_thread(child.ready):
                return
            if time.monotonic() > limit:
                before, progress = progress, await asyncio.to_thread(child.progress)
                if progress == before:
                    last = f" ({progress})" if progress else ""
                    late = f"was not ready and made no progress in {child.start_seconds:.0f} s{last}"
                    raise failed_start(child.name, late, child.log, child.data)
                limit = time.monotonic() + child.start_seconds
            await self._pause(POLL_SECONDS)

    async def _keep(self, child: Child) -> None:
        deaths = 0
        while True:
            started = time.monotonic()
            code = await self._ended(child)
            if code is None:
                return
            deaths = 0 if time.monotonic() - started > STEADY_SECONDS else deaths
            pause = BACKOFF_SECONDS[min(deaths, len(BACKOFF_SECONDS) - 1)]
            deaths += 1
            self.statuses[child.name].restarts += 1
            self._set(child, "restarting", f"ended with {code}; restart in {pause:g} s")
            await self._pause(pause)
            try:
                await self._launch(child)
            except (CannotRun, OSError) as error:
                log.warning("%s", error)

    async def _ended(self, child: Child) -> int | None:
        """The exit status of the child's process; None if a stop is requested first."""
        process = self._processes[child.name]
        next_check, failed = time.monotonic() + self._check_seconds, 0
        while not self.stopping.is_set():
            code = process.poll()
            if code is not None:
                # Survivors of the group must not run beside the successor.
                kill_group(process)
                return code
            if time.monotonic() > next_check:
                failed = 0 if await self._is_ready(child) else failed + 1
                self._show_readiness(child, failed < UNREADY_CHECKS)
                next_check = time.monotonic() + self._check_seconds
            await self._pause(POLL_SECONDS)
        return None

    @staticmethod
    async def _is_ready(child: Child) -> bool:
        try:
            return await asyncio.to_thread(child.ready)
        except CannotRun:
            return False

    def _show_readiness(self, child: Child, ready: bool) -> None:
        """Show a running child as unready, for instance while a server it depends on is unavailable."""
        state = "ready" if ready else "unready"
        if self.statuses[child.name].state in {"ready", "unready"} - {state}:
            self._set(child, state)

    async def _pause(self, seconds: float) -> None:
        await pause(self.stopping, seconds)

    def _set(self, child: Child, state: str, detail: str = "") -> None:
        status = self.statuses[child.name]
        process = self._processes.get(child.name)
        status.pid = process.pid if process and process.poll() is None else None
        status.state, status.detail = state, detail
        self._changed(status)
