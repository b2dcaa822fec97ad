"""What goes wrong on purpose: processes killed at random moments, the broker restarted."""

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping

from rich.console import Console

from local.supervisor import Status

VICTIMS = ("edge", "processors", "processors", "writer", "writer", "clickhouse")
"""Who is killed how often, relative to each other; a kind with several workers loses any of them."""
QUIET_SECONDS = (0.3, 3.0)
AGAIN = 0.25
"""How often one that has just come back dies at once again: what the first death left undone is being done then."""
AGAIN_SECONDS = (0.0, 0.5)
WAIT_SECONDS = 300.0
"""Longest wait for someone to kill; the longest back-off of a server that died often is a tenth of it."""
_LOOK_SECONDS = 0.05


class Disorder:
    """Kills `kills` processes and restarts the broker `broker_restarts` times.

    `statuses` tells of all processes there are, by name: a kind, and a number behind it where there are several. `behind` tells how
    many records lie before each kind of worker: a death waits until there are some, or nobody knows.
    """

    def __init__(
        self,
        statuses: Callable[[], Mapping[str, Status]],
        luck: random.Random,
        kills: int,
        broker_restarts: int,
        console: Console,
        behind: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        self._statuses = statuses
        self._behind = behind
        self._random = luck
        self.plan = self._random.choices(VICTIMS, k=kills) + ["kafka"] * broker_restarts
        """Whose turn it is, in order."""
        self._random.shuffle(self.plan)
        self._console = console
        self._began = time.monotonic()
        self.done: Counter[str] = Counter()
        """Deaths by name; those at once after another are not in the plan."""
        self.planned_done = 0
        self.backlogs: list[int] = []
        """Records that lay before the workers at each death, of all kinds together, where the broker could tell."""

    async def run(self) -> None:
        """Carry the plan out, each death at a random moment after the last."""
        for kind in self.plan:
            await asyncio.sleep(self._random.uniform(*QUIET_SECONDS))
            # As many draws for each death, whoever there is: so a seed repeats its choices.
            which, asked = self._random.random(), self._random.random() < 0.5
            again, wait = self._random.random() < AGAIN, self._random.uniform(*AGAIN_SECONDS)
            name, pid = await self._end(
                kind, which, signal.SIGTERM if kind == "kafka" and asked else signal.SIGKILL
            )
            self.planned_done += 1
            if again and kind in {"processors", "writer"}:
                await self._end_again(name, pid, wait)

    async def _end(self, kind: str, which: float, how: signal.Signals) -> tuple[str, int]:
        """End one of the kind; where none is there or on its way up, or has anything to do, that is waited for. Raises TimeoutError."""
        began = time.monotonic()
        while time.monotonic() - began < WAIT_SECONDS:
            behind = self._behind()
            names = [name for name in self._statuses() if name.rstrip("0123456789") == kind]
            if names and (not behind or any(behind.values())):
                name = names[int(which * len(names))]
                pid = self._pid(name, "ready", "starting")
                if pid is not None and self._kill(name, pid, how):
                    return name, pid
            await asyncio.sleep(_LOOK_SECONDS)
        there = ", ".join(
            f"{name} {status.state} {status.detail}" for name, status in self._statuses().items()
        )
        raise TimeoutError(
            f"no {kind} to kill for {WAIT_SECONDS:.0f} s: {there}; {dict(self._behind())} behind"
        )

    async def _end_again(self, name: str, former: int, wait: float) -> None:
        """Kill the successor of a process that was killed, unless the worker is taken away meanwhile or never comes back."""
        began = time.monotonic()
        while name in self._statuses() and time.monotonic() - began < WAIT_SECONDS:
            pid = self._pid(name, "ready")
            if pid not in {None, former}:
                await asyncio.sleep(wait)
                self._kill(name, pid, signal.SIGKILL)
                return
            await asyncio.sleep(_LOOK_SECONDS)

    def _pid(self, name: str, *states: str) -> int | None:
        """The process of a child that is in one of the states."""
        status = self._statuses()[name]
        return status.pid if status.state in states else None

    def _kill(self, name: str, pid: int, how: signal.Signals) -> bool:
        try:
            os.kill(pid, how)
        except ProcessLookupError:
            return False
        self.done[name] += 1
        behind = self._behind()
        if behind:
            self.backlogs.append(sum(behind.values()))
        before = ", ".join(f"{count} before {kind}" for kind, count in behind.items()) or "backlog unknown"
        self._console.print(f"  {time.monotonic() - self._began:6.1f} s  {how.name:8} {name:12} {before}")
        return True
