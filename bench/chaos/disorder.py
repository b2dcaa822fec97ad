"""What goes wrong on purpose: processes killed at random moments, the broker restarted, workers added and taken away."""

import asyncio
import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress

from rich.console import Console

from local.supervisor import Supervisor

VICTIMS = ("edge", "processors", "processors", "writer", "writer", "clickhouse")
"""Who is killed how often, relative to each other; workers beyond the first count as processors."""
QUIET_SECONDS = (0.3, 3.0)
AGAIN = 0.25
"""How often one that has just come back dies at once again: what the first death left undone is being done then."""
AGAIN_SECONDS = (0.0, 0.5)


class Disorder:
    """Kills `kills` processes and restarts the broker `broker_restarts` times while `going` says so."""

    def __init__(
        self, supervisor: Supervisor, seed: int, kills: int, broker_restarts: int, console: Console
    ) -> None:
        self._supervisor = supervisor
        self._random = random.Random(seed)
        self._plan = self._random.choices(VICTIMS, k=kills) + ["kafka"] * broker_restarts
        self._random.shuffle(self._plan)
        self._console = console
        self._began = time.monotonic()
        self.done: Counter[str] = Counter()
        self.over = False
        """Whether everything planned has happened."""

    async def run(self) -> None:
        """Carry the plan out, each death at a random moment after the last."""
        for kind in self._plan:
            await asyncio.sleep(self._random.uniform(*QUIET_SECONDS))
            name = self._random.choice([n for n in self._supervisor.statuses if n.rstrip("23") == kind])
            # A child that is on its way up is a victim like any other; one that isn't there is waited for.
            pid = await self._pid(name, "ready", "starting")
            number = signal.SIGTERM if kind == "kafka" and self._random.random() < 0.5 else signal.SIGKILL
            self._kill(name, pid, number)
            again, wait = self._random.random() < AGAIN, self._random.uniform(*AGAIN_SECONDS)
            if again and kind in {"processors", "writer"}:
                pid = await self._pid(name, "ready", other=pid)
                await asyncio.sleep(wait)
                self._kill(name, pid, signal.SIGKILL)
        self.over = True

    def _kill(self, name: str, pid: int, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        self.done[name] += 1
        self._console.print(f"  {time.monotonic() - self._began:6.1f} s  {number.name:8} {name}")

    async def _pid(self, name: str, *states: str, other: int = 0) -> int:
        """The process of a child that is in one of the states and is not the `other`."""
        while True:
            status = self._supervisor.statuses[name]
            if status.pid is not None and status.pid != other and status.state in states:
                return status.pid
            await asyncio.sleep(0.05)
