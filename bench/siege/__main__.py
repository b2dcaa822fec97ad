"""`python -m bench.siege`: hostile tokens attack next to an honest project; exit status 0 only if that is unharmed."""

import asyncio
import logging
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from uuid import UUID

import click
import psutil
from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

from bench.chaos import proof
from bench.chaos.chaos_load import Load
from bench.processes import SPAWN, cpu_seconds, elsewhere, family, resident_bytes
from bench.report import Claim, show_claims
from bench.servers import cache_option, folder_option, kept_or_temporary, prepare, supervised
from bench.siege import honest, reading, verdict
from bench.siege.attack import HELD_BYTES, Report, Target, attack, attack_names
from bench.siege.bodies import MEGABYTE
from cli.demo.sample_events import load_samples
from cli.projects import CreatedProject, create_project
from schemas.environment import load
from schemas.settings import MigrateSettings

REST_SECONDS = 120
BEGIN_SECONDS = 300.0
"""The generator has the lowest priority on the machine."""
DECLARING = 8
OWN_DESCRIPTORS = 256
MB = 1 << 20
HOSTILE_LIMIT = 100_000
"""High, so that the attack doesn't end by exhausting its requests per minute."""


@click.command()
@click.option("--connections", default=1000, show_default=True, help="Hostile connections.")
@click.option("--attack", "attacks", multiple=True, help="An attack; repeatable. Default: all.")
@click.option("--rate", default=40.0, show_default=True, help="Honest batches a second.")
@click.option("--events", default=10, show_default=True, help="Events in each.")
@click.option("--quiet", default=6, show_default=True, help="Windows before the attack.")
@click.option("--attacked", default=6, show_default=True, help="Windows during the attack.")
@click.option("--seconds", default=10.0, show_default=True, help="Length of a window.")
@click.option("--workers", default=1, show_default=True, help="Workers of the edge.")
@folder_option
@cache_option
def siege(data_dir: Path | None, **options: Any) -> None:
    """Attack with one token and prove that another project is served exactly and as fast as before."""
    console = Console(highlight=False, soft_wrap=True)
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    with kept_or_temporary(data_dir) as folder:
        result = asyncio.run(run_siege(console, folder, **options))
    console.print("[green]unharmed[/]" if result.unharmed else "[red]HARMED[/]")
    sys.exit(0 if result.unharmed else 1)


class Result(Struct, frozen=True):
    """Whether every claim held, and whether the honest project was as fast as before."""

    held: bool
    delays: verdict.Delays
    answers: dict[str, Counter[str]]

    @property
    def unharmed(self) -> bool:
        """Whether both hold."""
        return self.held and self.delays.hold


async def run_siege(
    console: Console,
    data_dir: Path,
    *,
    connections: int,
    attacks: Sequence[str],
    rate: float,
    events: int,
    quiet: int,
    attacked: int,
    seconds: float,
    workers: int,
    cache: Path,
) -> Result:
    """One run on its own servers."""
    by_address = connections + 50
    limits = _limits(by_address, connections // (len(attacks) or len(attack_names())))
    stack = prepare(data_dir, cache, SVC_EDGE_WORKERS=str(workers), **limits)
    async with AsyncExitStack() as cleanup:
        supervisor = await cleanup.enter_async_context(supervised(stack.children()))
        pool = cleanup.enter_context(elsewhere())
        settings = load(MigrateSettings, stack.environ)
        port = stack.edge.ingest_port
        honest_project, flooding, target = await _projects(settings, port)
        load_of_honest = Load(load_samples(), random.SystemRandom().randrange(1 << 31), 0.0)
        count = max(1, round(rate * seconds))

        store = await asyncio.to_thread(proof.Store, settings)
        cleanup.callback(store.close)
        readers = reading.Readers(
            stack.dashboard_url, stack.dashboard.admin_password, (int(honest_project.id), int(flooding.id))
        )
        task = asyncio.create_task(readers.read_repeatedly())
        cleanup.callback(task.cancel)

        async def window() -> honest.Window:
            requests = honest.batches(load_of_honest, honest_project.token, count - 1, events)
            requests.insert(count // 2, honest.large(load_of_honest, honest_project.token))
            sent = await asyncio.get_running_loop().run_in_executor(pool, honest.send, port, requests, rate)
            number, ids = int(honest_project.id), len(load_of_honest.ids)
            late = await reading.behind(store, number, ids, verdict.LATE_SECONDS)
            return replace(sent, behind=late, pages=readers.taken())

        await window()
        pid = supervisor.statuses["edge"].pid
        assert pid is not None
        _limit_descriptors(pid, 2 * by_address + OWN_DESCRIPTORS)
        cpu = [cpu_seconds(pid)]
        before_windows = [await window() for _ in range(quiet)]
        cpu.append(cpu_seconds(pid))
        before_mb = resident_bytes(pid) / MB
        siege = Siege(target, attacks, connections)
        cleanup.callback(siege.end)
        await asyncio.to_thread(siege.begun)
        attacked_windows = [await window() for _ in range(attacked)]
        attacked_mb = resident_bytes(pid) / MB
        cpu.append(cpu_seconds(pid))
        report = await asyncio.to_thread(siege.end)
        after_windows = [await window()]
        after_mb = await _settled_mb(pid, before_mb + verdict.MAX_RETAINED_MB, 60)
        delays = verdict.delays(before_windows, attacked_windows)
        _show(console, report, [before_windows, attacked_windows, after_windows], delays)
        console.print(
            f"edge: {before_mb:.0f} MB before, {attacked_mb:.0f} under attack, {after_mb:.0f} after"
        )
        used = [(cpu[1] - cpu[0]) / max(1, quiet) / seconds, (cpu[2] - cpu[1]) / max(1, attacked) / seconds]
        console.print(f"edge: {used[0]:.0%} of a core before, {used[1]:.0%} under attack")
        windows = [*before_windows, *attacked_windows, *after_windows]
        errors = sum(answers["500"] for answers in report.answers.values())
        restarts = sum(status.restarts for status in supervisor.statuses.values())
        held = verdict.claims(windows, (before_mb, attacked_mb, after_mb), restarts, errors)
        held += await _stored(settings, int(honest_project.id), load_of_honest.ids)
        return Result(show_claims(console, held), delays, report.answers)


async def _projects(settings: MigrateSettings, port: int) -> tuple[CreatedProject, CreatedProject, Target]:
    """The honest project, the one that is flooded, and the target with the hostile tokens."""
    created = {
        name: await create_project(settings, name, rate_limit=limit)
        for name, limit in (("honest", 1_000_000), ("hostile", HOSTILE_LIMIT), ("limited", 100))
    }
    flooding = await create_project(settings, "flooding")
    declaring = [
        await create_project(settings, f"declaring {number}", rate_limit=HOSTILE_LIMIT)
        for number in range(DECLARING)
    ]
    target = Target(
        port=port,
        token=created["hostile"].token,
        limited=created["limited"].token,
        flooding=flooding.token,
        declaring=tuple(project.token for project in declaring),
    )
    return created["honest"], flooding, target


def _limits(by_address: int, of_each_form: int) -> dict[str, str]:
    """Settings of the edge: bodies held open exceed a token's share, declared ones the whole."""
    return {
        "SVC_EDGE_ADDRESS_CONNECTIONS": str(by_address),
        "SVC_EDGE_TOKEN_BODY_BYTES": str(max(MEGABYTE, of_each_form * HELD_BYTES // 2)),
        "SVC_EDGE_BODY_BYTES": str(max(4, of_each_form) * MEGABYTE),
    }


def _limit_descriptors(pid: int, count: int) -> None:
    """Leave the edge descriptors for two addresses at their limits, or half heads would take them all."""
    for member in family(pid):
        member.rlimit(psutil.RLIMIT_NOFILE, (count, count))


async def _settled_mb(pid: int, goal: float, seconds: float) -> float:
    """The memory, once it is at most `goal` or after a time limit."""
    end = time.monotonic() + seconds
    while (now := resident_bytes(pid) / MB) > goal and time.monotonic() < end:
        await asyncio.sleep(0.5)
    return now


class Siege:
    """The attack, in its process."""

    def __init__(self, target: Target, attacks: Sequence[str], connections: int) -> None:
        self._begun, self._stop = SPAWN.Event(), SPAWN.Event()
        self._results, sender = SPAWN.Pipe(duplex=False)
        self._process = SPAWN.Process(
            target=attack, args=(target, attacks, connections, self._begun, self._stop, sender.send)
        )
        self._process.start()
        self._report: Report | None = None

    def begun(self) -> None:
        """Wait until every form is active. Raises TimeoutError."""
        if not self._begun.wait(BEGIN_SECONDS):
            raise TimeoutError(f"the attack was not under way after {BEGIN_SECONDS:.0f} s")

    def end(self) -> Report:
        """Stop it and return its report."""
        if self._report is None:
            self._stop.set()
            self._report = self._results.recv() if self._results.poll(60) else Report({})
            self._process.join(10)
            self._process.kill()
        return self._report


def _show(
    console: Console, report: Report, phases: list[list[honest.Window]], delays: verdict.Delays
) -> None:
    table = Table("form of attack", "answers")
    for name, answers in report.answers.items():
        table.add_row(name, ", ".join(f"{answer} {count}" for answer, count in sorted(answers.items())))
    console.print(table)
    for name, windows in zip(("quiet", "attacked", "afterwards"), phases, strict=True):
        console.print(
            f"{name}: p99 of each window {', '.join(f'{each.p99 * 1000:.1f}' for each in windows)} ms, "
            f"queryable after {', '.join(f'{each.behind:.1f}' for each in windows)} s, "
            f"longest page {', '.join(f'{max(each.pages, default=0):.1f}' for each in windows)} s"
        )
    console.print(
        f"p99 {delays.quiet:.1f} ms quiet, noise {delays.noise:.1f}, {delays.attacked:.1f} under attack "
        f"({'[green]ok[/]' if delays.hold else '[red]NO[/]'}, less than {delays.allowed:.1f})"
    )


async def _stored(settings: MigrateSettings, project: int, ids: set[UUID]) -> list[Claim]:
    """The claims that each honest event is stored once and every accepted event is counted."""
    store = await asyncio.to_thread(proof.Store, settings)
    try:
        await _rest(store)
        rows = await asyncio.to_thread(store.rows, f"SELECT id FROM events WHERE project_id = {project}")
        stored = [UUID(int=row[0]) for row in rows]
        return [
            Claim("honest events stored", len(ids), len(stored)),
            Claim("honest ids stored", len(ids), len(set(stored) & ids)),
            Claim("differences that reconciling finds", 0, await asyncio.to_thread(store.reconciled)),
        ]
    finally:
        store.close()


async def _rest(store: proof.Store) -> None:
    """Wait until there is no progress and reconciling agrees or times out."""
    end, last, moved = time.monotonic() + REST_SECONDS, -1, time.monotonic()
    while time.monotonic() < end:
        progress = await asyncio.to_thread(proof.progress, store)
        if progress != last:
            last, moved = progress, time.monotonic()
        elif time.monotonic() - moved > 3 and not await asyncio.to_thread(store.reconciled):
            return
        await asyncio.sleep(0.5)


if __name__ == "__main__":
    siege()
