"""The faults of a run: kills, and scaling of both kinds of workers."""

import asyncio
import random
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from statistics import median

from rich.console import Console

from bench.chaos.fleet import Fleet
from bench.chaos.group_watch import Groups
from bench.chaos.kills import ProcessKiller
from bench.chaos.scaling import Scaling, sizes
from bench.report import Claim
from runtime.supervisor import Status, Supervisor

_POLL_SECONDS = 0.05
_BUSY_SECONDS = 60.0


class FaultInjector:
    """Kills processes and scales fleets, each with its own generator from the seed: both are reproducible.

    `scalings` is the number of changes of the number of workers, for each kind.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        fleets: Mapping[str, Fleet],
        groups: Groups,
        seed: int,
        kills: int,
        broker_restarts: int,
        scalings: int,
        console: Console,
    ) -> None:
        self._supervisor = supervisor
        self._fleets = fleets
        self._groups = groups
        self._killer = ProcessKiller(
            self._statuses, random.Random(seed), kills, broker_restarts, console, self._behind
        )
        self._scalings: list[Scaling] = []
        for kind in groups.kinds:
            rng = random.Random(f"{seed} {kind}")
            plan = sizes(rng, scalings)
            console.print(f"{kind}: {' → '.join(map(str, plan))}")
            self._scalings.append(
                Scaling(fleets[kind], plan, rng, partial(groups.assignments, kind), console)
            )

    async def inject_faults(self) -> None:
        """Inject all faults, starting once the workers have a backlog."""
        async with asyncio.TaskGroup() as polling:
            # Polling must outlive the others, which wait for its results.
            poll = polling.create_task(self._groups.watch())
            with suppress(TimeoutError):
                async with asyncio.timeout(_BUSY_SECONDS):
                    await self._busy()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._killer.kill_repeatedly())
                for scaling in self._scalings:
                    tasks.create_task(scaling.scale())
            poll.cancel()

    async def _busy(self) -> None:
        while not all(
            self._groups.assignments(kind) and self._groups.behind.get(kind) for kind in self._groups.kinds
        ):
            await asyncio.sleep(_POLL_SECONDS)

    @property
    def summary(self) -> str:
        """The faults in one line."""
        deaths = Counter[str]()
        for name, count in self._killer.done.items():
            deaths[name.rstrip("0123456789")] += count
        kinds_killed = ", ".join(f"{kind} {count}" for kind, count in sorted(deaths.items()))
        changes = sum(scaling.done for scaling in self._scalings)
        shares = ", ".join(f"{kind} {self._groups.rebalances[kind]}" for kind in self._groups.kinds)
        killed = [name for fleet in self._fleets.values() for name in fleet.killed_after_grace]
        backlogs = self._killer.backlogs
        backlog = (
            f", backlog at a death at least {min(backlogs)} records, median {median(backlogs):.0f}"
            if backlogs
            else ""
        )
        late = f", killed after a SIGTERM: {', '.join(killed)}" if killed else ""
        return f"{deaths.total()} deaths ({kinds_killed}), {changes} scalings, rebalances: {shares}{backlog}{late}"

    @property
    def restarts(self) -> dict[str, int]:
        """The restarts of each child and fleet."""
        servers = {
            name: status.restarts for name, status in self._supervisor.statuses.items() if status.restarts
        }
        return servers | {kind: fleet.restarts for kind, fleet in self._fleets.items()}

    def claims(self) -> list[Claim]:
        """All planned faults have happened."""
        planned = sum(scaling.planned for scaling in self._scalings)
        return [
            Claim("deaths that were planned", len(self._killer.plan), self._killer.planned_done),
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
