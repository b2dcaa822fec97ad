"""Supervises child processes: starts them in order, restarts them after they die, stops them."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from broker.waiting import pause
from runtime.process import RunningProcess, await_end, kill
from schemas.errors import CannotRun

log = logging.getLogger(__name__)

POLL_SECONDS = 0.1
RESTART_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Pauses before the restarts of a child that dies again and again."""
CHECK_SECONDS = 2.0
UNREADY_CHECKS = 3  # in a row: a single check may fail on a busy machine
STEADY_SECONDS = 60.0
"""A child that ran this long restarts with the shortest pause again."""


class Supervised(Protocol):
    """A program and its readiness check.

    `ready` is called in a thread and may block for seconds. A program that isn't ready after `start_seconds` is ended,
    unless its `progress`, called likewise, has changed meanwhile. A program with `once` exits by itself; exit status 0
    makes it ready.
    """

    @property
    def name(self) -> str: ...
    @property
    def once(self) -> bool: ...
    @property
    def start_seconds(self) -> float: ...
    @property
    def grace_seconds(self) -> float: ...
    @property
    def ready(self) -> Callable[[], bool]: ...
    @property
    def progress(self) -> Callable[[], str]: ...

    def prepare(self) -> Callable[[], RunningProcess]:
        """Prepare a start, in a thread; the result starts the program. Raises CannotRun or OSError."""

    def failed(self, what: str) -> CannotRun:
        """The error of a start that failed."""


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
    """Runs children and reports their changes.

    It calls `changed` with a child's status at each change, and `died` with the process id and exit status.
    Children stop in reverse order, each after the end of the next, or, with `together`, all in the same time.
    """

    def __init__(
        self,
        children: Sequence[Supervised],
        changed: Callable[[Status], None] = lambda _: None,
        died: Callable[[int, int], None] = lambda _, __: None,
        check_seconds: float = CHECK_SECONDS,
        restart_seconds: Sequence[float] = RESTART_SECONDS,
        *,
        together: bool = False,
    ) -> None:
        self.children = tuple(children)
        self.statuses = {child.name: Status(child.name) for child in children}
        self.stopping = asyncio.Event()
        self._changed = changed
        self._died = died
        self._check_seconds = check_seconds
        self._restart_seconds = restart_seconds
        self._together = together
        self._processes: dict[str, RunningProcess] = {}
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
        """Stop all children and wait for their end."""
        self.stopping.set()
        await asyncio.gather(*self._keepers.values())
        if self._together:
            await self._end(self.children)
        else:
            for child in reversed(self.children):
                await self._end([child])

    async def _end(self, children: Sequence[Supervised]) -> None:
        """Terminate these children; kill those that have not ended after their grace period."""
        ending: list[tuple[Supervised, RunningProcess]] = []
        for child in children:
            process = self._processes.get(child.name)
            if process and not (child.once and process.poll() is not None):
                self._set(child, "stopping")
                if process.poll() is None:
                    process.terminate()
                ending.append((child, process))
        began = time.monotonic()
        for child, process in ending:
            grace = 0.0 if self._hurry else child.grace_seconds
            left = max(0.0, began + grace - time.monotonic())
            in_time = await asyncio.to_thread(await_end, process, left)
            self._set(child, "stopped", "" if in_time else f"killed after {grace:.0f} s")

    async def _launch(self, child: Supervised) -> None:
        self._set(child, "preparing")
        start = await asyncio.to_thread(child.prepare)
        if self.stopping.is_set():
            return
        process = self._processes[child.name] = start()
        self._set(child, "starting")
        try:
            await self._await_ready(child, process)
        except BaseException:
            kill(process)
            raise
        if not self.stopping.is_set():
            self._set(child, "done" if child.once else "ready")

    async def _await_ready(self, child: Supervised, process: RunningProcess) -> None:
        limit, progress = time.monotonic() + child.start_seconds, ""
        next_look = time.monotonic() + self._check_seconds
        while not self.stopping.is_set():
            code = process.poll()
            if child.once and code == 0:
                return
            if code is not None:
                raise child.failed(f"ended with {code} while starting")
            if not child.once and await asyncio.to_thread(child.ready):
                return
            if time.monotonic() > next_look:
                self._set(child, "starting", await asyncio.to_thread(child.progress))
                next_look = time.monotonic() + self._check_seconds
            if time.monotonic() > limit:
                before, progress = progress, await asyncio.to_thread(child.progress)
                if progress == before:
                    last = f" ({progress})" if progress else ""
                    late = f"was not ready and made no progress in {child.start_seconds:.0f} s{last}"
                    raise child.failed(late)
                limit = time.monotonic() + child.start_seconds
            await self._pause(POLL_SECONDS)

    async def _keep(self, child: Supervised) -> None:
        deaths = 0
        while True:
            started = time.monotonic()
            code = await self._ended(child)
            if code is None:
                return
            deaths = 0 if time.monotonic() - started > STEADY_SECONDS else deaths
            self._died(self._processes[child.name].pid, code)
            pause = self._restart_seconds[min(deaths, len(self._restart_seconds) - 1)]
            deaths += 1
            self.statuses[child.name].restarts += 1
            self._set(child, "restarting", f"ended with {code}; restart in {pause:g} s")
            await self._pause(pause)
            try:
                await self._launch(child)
            except (CannotRun, OSError) as error:
                log.warning("%s", error, extra={"event": "child_start_failed"})

    async def _ended(self, child: Supervised) -> int | None:
        """The exit status of the child's process; None if a stop is requested first."""
        process = self._processes[child.name]
        next_check, failed = time.monotonic() + self._check_seconds, 0
        while not self.stopping.is_set():
            code = process.poll()
            if code is not None:
                # Remaining processes of the group must not run together with the successor.
                kill(process)
                return code
            if time.monotonic() > next_check:
                failed = 0 if await self._is_ready(child) else failed + 1
                await self._show_readiness(child, failed < UNREADY_CHECKS)
                next_check = time.monotonic() + self._check_seconds
            await self._pause(POLL_SECONDS)
        return None

    @staticmethod
    async def _is_ready(child: Supervised) -> bool:
        try:
            return await asyncio.to_thread(child.ready)
        except CannotRun:
            return False

    async def _show_readiness(self, child: Supervised, ready: bool) -> None:
        """Show a running child as unready, for instance while a server it depends on is unavailable."""
        state = "ready" if ready else "unready"
        if self.statuses[child.name].state in {"ready", "unready"} - {state}:
            self._set(child, state, "" if ready else await asyncio.to_thread(child.progress))

    async def _pause(self, seconds: float) -> None:
        await pause(self.stopping, seconds)

    def _set(self, child: Supervised, state: str, detail: str = "") -> None:
        status = self.statuses[child.name]
        process = self._processes.get(child.name)
        status.pid = process.pid if process and process.poll() is None else None
        status.state, status.detail = state, detail
        self._changed(status)
