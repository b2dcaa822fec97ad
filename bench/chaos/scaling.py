"""Adds and removes workers under load; waits after each change until the group has rebalanced."""

import asyncio
import random
import signal
import time
from collections.abc import Callable
from itertools import cycle

from rich.console import Console

from bench.chaos.fleet import Fleet
from bench.chaos.group_watch import Assignments

MOST_WORKERS = 3
PAUSE_SECONDS = (0.3, 3.0)
SHARED_SECONDS = 300.0
"""Longest wait for the group; kills continue meanwhile and may remove a member for the time of its back-off."""
_POLL_SECONDS = 0.05


def sizes(rng: random.Random, changes: int) -> list[int]:
    """The number of workers at the start and after each change: alternately up and down, in random steps."""
    plan = [1]
    for change in range(changes):
        up = change % 2 == 0
        plan.append(rng.randint(plan[-1] + 1, MOST_WORKERS) if up else rng.randint(1, plan[-1] - 1))
    return plan


class Scaling:
    """Scales a fleet from each size to the next; `done` counts the changes after which the group has rebalanced."""

    def __init__(
        self,
        fleet: Fleet,
        plan: list[int],
        rng: random.Random,
        assignments: Callable[[], Assignments | None],
        console: Console,
    ) -> None:
        self._fleet = fleet
        self._plan = plan
        self._rng = rng
        self._assignments = assignments
        self._console = console
        first = rng.choice((signal.SIGTERM, signal.SIGKILL))
        # Alternating, so that two changes cover both signals.
        self._ends = cycle((first, signal.SIGKILL if first is signal.SIGTERM else signal.SIGTERM))
        self._began = time.monotonic()
        self.done = 0

    @property
    def planned(self) -> int:
        """The number of planned changes."""
        return len(self._plan) - 1

    async def scale(self) -> None:
        """Carry out the plan, each change a random time after the previous one has taken effect."""
        for size in self._plan[1:]:
            await asyncio.sleep(self._rng.uniform(*PAUSE_SECONDS))
            await self._change(size)
            await self._shared()

    async def _change(self, size: int) -> None:
        while len(self._fleet.present) < size:
            name = self._rng.choice(self._fleet.absent)
            self._print(f"{'added':8} {name}")
            self._fleet.add_worker(name)
        leaving = self._rng.sample(self._fleet.present, len(self._fleet.present) - size)
        await asyncio.gather(*(self._remove(name, next(self._ends)) for name in leaving))

    async def _remove(self, name: str, how: signal.Signals) -> None:
        self._print(f"{how.name:8} {name}, removed")
        await self._fleet.remove_worker(name, how)

    async def _shared(self) -> None:
        """Wait until exactly the present workers share all partitions."""
        began, wanted = time.monotonic(), {self._fleet.member(name) for name in self._fleet.present}
        while time.monotonic() - began < SHARED_SECONDS:
            assignments = self._assignments()
            if assignments is not None and set(assignments) == wanted:
                self.done += 1
                shares = ", ".join(
                    f"{worker}: {sorted(share)}" for worker, share in sorted(assignments.items())
                )
                self._print(
                    f"{'shared':8} {self._fleet.kind} {shares} after {time.monotonic() - began:.1f} s"
                )
                return
            await asyncio.sleep(_POLL_SECONDS)
        self._print(f"{'NOT':8} shared among {sorted(wanted)}: {self._assignments()}")

    def _print(self, text: str) -> None:
        self._console.print(f"  {time.monotonic() - self._began:6.1f} s  {text}")
