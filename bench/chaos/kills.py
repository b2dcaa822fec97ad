"""Kills processes at random moments and restarts the broker."""

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping

from rich.console import Console

from runtime.supervisor import Status

VICTIMS = ("edge", "processors", "processors", "writer", "writer", "clickhouse", "notify")
"""Kinds of processes to kill, weighted by repetition; any worker of the kind may be chosen."""
PAUSE_SECONDS = (0.3, 3.0)
KILL_AGAIN_RATE = 0.25
"""Share of restarted workers that are killed a second time, during their recovery."""
KILL_AGAIN_SECONDS = (0.0, 0.5)
WAIT_SECONDS = 300.0
"""Longest wait for a victim; ten times the longest back-off of a server."""
_POLL_SECONDS = 0.05


class ProcessKiller:
    """Kills `kills` processes and restarts the broker `broker_restarts` times.

    `statuses` returns all processes by name: a kind, with a number if there are several. `behind` returns
    each kind's backlog in records: a kill waits until there is one, or the backlog is unknown.
    """

    def __init__(
        self,
        statuses: Callable[[], Mapping[str, Status]],
        rng: random.Random,
        kills: int,
        broker_restarts: int,
        console: Console,
        behind: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        self._statuses = statuses
        self._behind = behind
        self._random = rng
        self.plan = self._random.choices(VICTIMS, k=kills) + ["kafka"] * broker_restarts
        """The kinds to kill, in order."""
        self._random.shuffle(self.plan)
        self._console = console
        self._began = time.monotonic()
        self.done: Counter[str] = Counter()
        """Kills by name, including the second kills, which are not in the plan."""
        self.planned_done = 0
        self.backlogs: list[int] = []
        """The total backlog in records at each kill, if known."""

    async def kill_repeatedly(self) -> None:
        """Carry out the plan, each kill a random time after the previous one."""
        for kind in self.plan:
            await asyncio.sleep(self._random.uniform(*PAUSE_SECONDS))
            # The same number of draws for each kill, so that a seed reproduces its choices.
            which, gracefully = self._random.random(), self._random.random() < 0.5
            repeat, wait = self._random.random() < KILL_AGAIN_RATE, self._random.uniform(*KILL_AGAIN_SECONDS)
            name, pid = await self._end(
                kind, which, signal.SIGTERM if kind == "kafka" and gracefully else signal.SIGKILL
            )
            self.planned_done += 1
            if repeat and kind in {"processors", "writer"}:
                await self._kill_successor(name, pid, wait)

    async def _end(self, kind: str, which: float, signum: signal.Signals) -> tuple[str, int]:
        """End a process of the kind; wait until one is running and has a backlog. Raises TimeoutError."""
        began = time.monotonic()
        while time.monotonic() - began < WAIT_SECONDS:
            behind = self._behind()
            names = [name for name in self._statuses() if name.rstrip("0123456789") == kind]
            if names and (not behind or any(behind.values())):
                name = names[int(which * len(names))]
                pid = self._pid(name, "ready", "starting")
                if pid is not None and self._kill(name, pid, signum):
                    return name, pid
            await asyncio.sleep(_POLL_SECONDS)
        there = ", ".join(
            f"{name} {status.state} {status.detail}" for name, status in self._statuses().items()
        )
        raise TimeoutError(
            f"no {kind} to kill for {WAIT_SECONDS:.0f} s: {there}; {dict(self._behind())} behind"
        )

    async def _kill_successor(self, name: str, former: int, wait: float) -> None:
        """Kill the successor of a killed process, unless the worker is removed meanwhile or doesn't restart."""
        began = time.monotonic()
        while name in self._statuses() and time.monotonic() - began < WAIT_SECONDS:
            pid = self._pid(name, "ready")
            if pid not in {None, former}:
                await asyncio.sleep(wait)
                self._kill(name, pid, signal.SIGKILL)
                return
            await asyncio.sleep(_POLL_SECONDS)

    def _pid(self, name: str, *states: str) -> int | None:
        """The pid of a child in one of the states."""
        status = self._statuses()[name]
        return status.pid if status.state in states else None

    def _kill(self, name: str, pid: int, signum: signal.Signals) -> bool:
        try:
            os.kill(pid, signum)
        except ProcessLookupError:
            return False
        self.done[name] += 1
        behind = self._behind()
        if behind:
            self.backlogs.append(sum(behind.values()))
        before = ", ".join(f"{count} before {kind}" for kind, count in behind.items()) or "backlog unknown"
        self._console.print(f"  {time.monotonic() - self._began:6.1f} s  {signum.name:8} {name:12} {before}")
        return True
