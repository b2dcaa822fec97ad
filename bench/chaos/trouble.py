"""Everything that happens to a run at once: deaths, and both kinds of worker growing more and fewer."""

import asyncio
import random
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from statistics import median

from rich.console import Console

from bench.chaos.disorder import Disorder
from bench.chaos.fleet import Fleet
from bench.chaos.groups import Groups
from bench.chaos.proof import Claim
from bench.chaos.scaling import Scaling, sizes
from local.supervisor import Status, Supervisor

_LOOK_SECONDS = 0.05
_BUSY_SECONDS = 60.0


class Trouble:
    """Deaths and changes of size side by side, each with luck of its own from the seed, so that neither disturbs the other's choices.

    `scale` is how many workers there are at first and at most, and how often that changes, of each kind that shares partitions.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        fleets: Mapping[str, Fleet],
        groups: Groups,
        seed: int,
        kills: int,
        broker_restarts: int,
        scale: tuple[int, int, int],
        console: Console,
    ) -> None:
        self._supervisor = supervisor
        self._fleets = fleets
        self._groups = groups
        self._disorder = Disorder(
            self._statuses, random.Random(seed), kills, broker_restarts, console, self._behind
        )
        self._scalings: list[Scaling] = []
        for kind in groups.kinds:
            luck = random.Random(f"{seed} {kind}")
            plan = sizes(luck, *scale)
            console.print(f"{kind}: {' → '.join(map(str, plan))}")
            self._scalings.append(Scaling(fleets[kind], plan, luck, partial(groups.held, kind), console))

    async def run(self) -> None:
        """Until all of it has happened; it begins once the workers have something to do."""
        async with asyncio.TaskGroup() as looks:
            # Whoever looks at the groups must not end before: all others would wait for what it saw last.
            looking = looks.create_task(self._groups.run())
            with suppress(TimeoutError):
                async with asyncio.timeout(_BUSY_SECONDS):
                    await self._busy()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._disorder.run())
                for scaling in self._scalings:
                    tasks.create_task(scaling.run())
            looking.cancel()

    async def _busy(self) -> None:
        while not all(
            self._groups.held(kind) and self._groups.behind.get(kind) for kind in self._groups.kinds
        ):
            await asyncio.sleep(_LOOK_SECONDS)

    @property
    def told(self) -> str:
        """What has happened, in one line."""
        deaths = Counter[str]()
        for name, count in self._disorder.done.items():
            deaths[name.rstrip("0123456789")] += count
        each = ", ".join(f"{kind} {count}" for kind, count in sorted(deaths.items()))
        changes = sum(scaling.done for scaling in self._scalings)
        shares = ", ".join(f"{kind} {self._groups.rebalances[kind]}" for kind in self._groups.kinds)
        killed = [name for fleet in self._fleets.values() for name in fleet.unwilling]
        backlogs = self._disorder.backlogs
        least = (
            f", backlog at a death at least {min(backlogs)} records, median {median(backlogs):.0f}"
            if backlogs
            else ""
        )
        late = f", killed after a SIGTERM: {', '.join(killed)}" if killed else ""
        return f"{deaths.total()} deaths ({each}), {changes} scalings, rebalances: {shares}{least}{late}"

    @property
    def restarts(self) -> dict[str, int]:
        """How often each was started again."""
        servers = {
            name: status.restarts for name, status in self._supervisor.statuses.items() if status.restarts
        }
        return servers | {kind: fleet.restarts for kind, fleet in self._fleets.items()}

    def claims(self) -> list[Claim]:
        """What was planned has happened."""
        planned = sum(scaling.planned for scaling in self._scalings)
        return [
            Claim("deaths that were planned", len(self._disorder.plan), self._disorder.planned_done),
            Claim(
                "changes of the number of workers", planned, sum(scaling.done for scaling in self._scalings)
            ),
        ]

    def _behind(self) -> Mapping[str, int]:
        return self._groups.behind

    def _statuses(self) -> Mapping[str, Status]:
        return dict(self._supervisor.statuses) | {
            name: status for fleet in self._fleets.values() for name, status in fleet.statuses.items()
        }
