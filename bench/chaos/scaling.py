"""Workers added and taken away in the middle of everything, each change awaited until the group has shared its partitions anew."""

import asyncio
import random
import signal
import time
from collections.abc import Callable
from itertools import cycle

from rich.console import Console

from bench.chaos.fleet import Fleet
from bench.chaos.groups import Held

QUIET_SECONDS = (0.3, 3.0)
SHARED_SECONDS = 300.0
"""Longest wait for the group; deaths go on meanwhile, and may send a member away for as long as its back-off lasts."""
_LOOK_SECONDS = 0.05


def sizes(luck: random.Random, first: int, most: int, changes: int) -> list[int]:
    """How many workers there are from the start and after each change: up and down in turn, at random steps.

    Raises ValueError where there is no room for a change.
    """
    if changes and most < 2:
        raise ValueError("workers cannot be added and taken away where one is the most")
    told, up = [first], first < most
    for _ in range(changes):
        told.append(luck.randint(told[-1] + 1, most) if up else luck.randint(1, told[-1] - 1))
        up = not up
    return told


class Scaling:
    """Brings a fleet from each size to the next; `done` are the changes that the group has answered with another share-out."""

    def __init__(
        self,
        fleet: Fleet,
        plan: list[int],
        luck: random.Random,
        held: Callable[[], Held | None],
        console: Console,
    ) -> None:
        self._fleet = fleet
        self._plan = plan
        self._luck = luck
        self._held = held
        self._console = console
        first = luck.choice((signal.SIGTERM, signal.SIGKILL))
        # In turn, so that two changes have seen both.
        self._ends = cycle((first, signal.SIGKILL if first is signal.SIGTERM else signal.SIGTERM))
        self._began = time.monotonic()
        self.done = 0

    @property
    def planned(self) -> int:
        """How many changes there shall be."""
        return len(self._plan) - 1

    async def run(self) -> None:
        """Carry the plan out, each change at a random moment after the one before has taken effect."""
        for size in self._plan[1:]:
            await asyncio.sleep(self._luck.uniform(*QUIET_SECONDS))
            await self._change(size)
            await self._shared()

    async def _change(self, size: int) -> None:
        while len(self._fleet.present) < size:
            name = self._luck.choice(self._fleet.absent)
            self._tell(f"{'added':8} {name}")
            self._fleet.add(name)
        leaving = self._luck.sample(self._fleet.present, len(self._fleet.present) - size)
        await asyncio.gather(*(self._take_away(name, next(self._ends)) for name in leaving))

    async def _take_away(self, name: str, how: signal.Signals) -> None:
        self._tell(f"{how.name:8} {name}, taken away")
        await self._fleet.remove(name, how)

    async def _shared(self) -> None:
        """Until exactly the present workers hold all partitions."""
        began, wanted = time.monotonic(), {self._fleet.member(name) for name in self._fleet.present}
        while time.monotonic() - began < SHARED_SECONDS:
            held = self._held()
            if held is not None and set(held) == wanted:
                self.done += 1
                shares = ", ".join(f"{worker}: {sorted(share)}" for worker, share in sorted(held.items()))
                self._tell(f"{'shared':8} {self._fleet.kind} {shares} after {time.monotonic() - began:.1f} s")
                return
            await asyncio.sleep(_LOOK_SECONDS)
        self._tell(f"{'NOT':8} shared among {sorted(wanted)}: {self._held()}")

    def _tell(self, text: str) -> None:
        self._console.print(f"  {time.monotonic() - self._began:6.1f} s  {text}")
