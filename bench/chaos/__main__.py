"""`python -m bench.chaos`: real servers, full load, random kills; exit status 0 only if every count is exact."""

import asyncio
import logging
import random
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from itertools import cycle
from pathlib import Path
from typing import Any

import click
from msgspec import Struct
from rich.console import Console

from bench.chaos import proof
from bench.chaos.chaos_cluster import cluster
from bench.chaos.chaos_load import Load
from bench.chaos.chaos_messages import Inbox, set_rules
from bench.chaos.commands import KILLED_SECONDS, Operator
from bench.chaos.faults import FaultInjector
from bench.chaos.fleet import Fleet, edge_children, of_either, worker_children
from bench.chaos.group_watch import Group, Groups
from bench.chaos.scaling import MOST_WORKERS
from bench.report import show_claims
from bench.servers import (
    cache_option,
    data_option,
    folder_option,
    kept_or_temporary,
    prepare,
    samples_of,
    supervised,
)
from broker.client import name_of
from cli.projects import CreatedProject, create_project
from cli.send.batch_sender import Sender, SendReport
from cli.send.send_batches import batches
from local.local_stack import Stack
from schemas.environment import load
from schemas.settings import MigrateSettings, ProcessorsSettings, WriterSettings
from schemas.topics import Topic

SLICE = 5_000
REPEATS = 0.2
"""Share of repeated ids."""
ROOT = Path(__file__).parents[2]
EDGES = 2
STALLED_SECONDS = 180
SETTLED_SECONDS = 5


@click.command()
@click.option("--events", default=200_000, show_default=True, help="Events sent, repeats included.")
@click.option(
    "--rate",
    default=3_000,
    show_default=True,
    help="Events a second once EVENTS are sent, until the last fault; 0: no limit.",
)
@click.option("--kills", default=30, show_default=True, help="Processes killed with -9.")
@click.option("--broker-restarts", default=2, show_default=True)
@click.option(
    "--scalings",
    default=6,
    show_default=True,
    help="Changes of the number of processors and of writers each.",
)
@click.option(
    "--commands", default=22, show_default=True, help="Commands of operators: changes, repairs, erasures."
)
@click.option("--cluster", "spread", is_flag=True, help="Three brokers, three ClickHouse servers, two edges.")
@click.option(
    "--other-version",
    type=click.Path(path_type=Path, exists=True, file_okay=False, resolve_path=True),
    help="A checkout of another version: each start of a process, and each command, is of either.",
)
@click.option(
    "--rebuild/--no-rebuild",
    default=True,
    help="At the end, rebuild the processors' tables while events arrive.",
)
@click.option("--seed", type=int, help="Reproduces a run's choices; default: random.")
@data_option
@folder_option
@cache_option
def chaos(seed: int | None, data_dir: Path | None, **options: Any) -> None:
    """Kill processes at random under load, operate the system meanwhile, and prove that every count is exact."""
    seed = random.SystemRandom().randrange(1 << 31) if seed is None else seed
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"seed {seed}")
    # Kills are expected here: silence the supervisor's warnings.
    logging.getLogger("local").setLevel(logging.ERROR)
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    with kept_or_temporary(data_dir) as folder:
        result = asyncio.run(run_chaos(console, seed, folder, **options))
    console.print(
        f"seed {seed}: {'[green]exact[/]' if result.exact else '[red]NOT exact[/]'}, {result.disorder}"
    )
    sys.exit(0 if result.exact else 1)


class Result(Struct, frozen=True):
    """Whether every claim held, and a summary of the faults."""

    exact: bool
    disorder: str


async def run_chaos(
    console: Console,
    seed: int,
    data_dir: Path,
    *,
    events: int,
    rate: int,
    kills: int,
    broker_restarts: int,
    scalings: int,
    commands: int,
    spread: bool,
    other_version: Path | None,
    rebuild: bool,
    data: Path,
    cache: Path,
) -> Result:
    """One run on its own servers."""
    servers, given = cluster(data_dir, cache) if spread else ([], {})
    cleanup, inbox = AsyncExitStack(), Inbox()
    stack = prepare(data_dir, cache, **given, **await cleanup.enter_async_context(inbox.listening()))
    edges = EDGES if spread else 1
    versions = [ROOT, *([other_version] if other_version else [])]
    fleets = fleets_of(stack, MOST_WORKERS, edges, versions, seed)
    async with cleanup:
        supervisor = await cleanup.enter_async_context(
            supervised([*servers, *(child for child in stack.children() if child.name not in fleets)])
        )
        for fleet in fleets.values():
            cleanup.push_async_callback(fleet.stop)
        await asyncio.gather(
            *(
                fleet.add_worker(name).ready()
                for kind, fleet in fleets.items()
                for name in fleet.absent[: edges if kind == "edge" else 1]
            )
        )
        ingest = [f"http://127.0.0.1:{one['SVC_INGEST_PORT']}" for one in fleets["edge"].environments]
        settings = load(MigrateSettings, stack.environ)
        projects = await _projects(settings)
        samples = samples_of(data)
        loads = [Load(samples, seed + n, REPEATS) for n in range(len(projects))]
        groups = groups_of(stack)
        faults = FaultInjector(
            supervisor,
            fleets,
            groups,
            seed,
            kills,
            broker_restarts,
            scalings,
            console,
        )
        rng = random.Random(f"{seed} commands")
        operator = Operator(
            settings, stack.environ, [p.id for p in projects], rng, commands, console, versions
        )

        async def send(count: int, until: "asyncio.Task[None]") -> list[SendReport]:
            share = count // len(projects)
            return await asyncio.gather(
                *(
                    _send(url, project.token, one, share, rate / len(projects), until)
                    for project, one, url in zip(projects, loads, cycle(ingest), strict=False)
                )
            )

        injection = asyncio.create_task(faults.inject_faults())
        operation = asyncio.create_task(operator.give_commands())
        began = time.monotonic()
        reports = await send(events, injection)
        await injection
        seconds = time.monotonic() - began
        await operation
        if rebuild:
            source, killed_after = rng.choice((None, "clickhouse")), rng.uniform(*KILLED_SECONDS)
            if (store := await drained(console, settings, 0, groups)) is not None:
                store.close()
            rebuilding = asyncio.create_task(_rebuild(operator, fleets["processors"], source, killed_after))
            reports += await send(events // 20, rebuilding)
            await rebuilding
        accepted = sum(r.accepted for r in reports)
        console.print(
            f"{accepted} events answered 202 in {seconds:.0f} s, {sum(one.repeated for one in loads)} of them repeats, "
            f"{sum(r.retries for r in reports)} batches tried again; {faults.summary}; {operator.summary}"
        )
        if refused := [p for r in reports for p in r.problems]:
            console.print(f"[red]refused:[/] {refused}")
        ids = {i for one in loads for i in one.ids}
        store = await drained(console, settings, len(ids), groups)
        erasable = {i for position, user in operator.erased for i in loads[position].of_leavers[user]}
        if store is None:
            return Result(exact=False, disorder=faults.summary)
        received = await inbox.claims(settings, store, console)
        found = await asyncio.to_thread(proof.claims, store, ids, accepted, erasable)
        proven = show_claims(
            console, [*found, *faults.claims(), *operator.claims(store.comments()), *received]
        )
        store.close()
        console.print(f"restarts {faults.restarts}")
        return Result(proven and not refused, faults.summary)


async def _projects(settings: MigrateSettings) -> list[CreatedProject]:
    projects = [await create_project(settings, f"chaos {n}", rate_limit=1_000_000) for n in range(3)]
    await set_rules(settings, [project.id for project in projects])
    return projects


def fleets_of(
    stack: Stack, most: int, edges: int = 1, versions: Sequence[Path] = (), seed: int = 0
) -> dict[str, Fleet]:
    """The edges, and up to `most` processors and writers each; of several versions where there are."""
    rng = random.Random(f"{seed} versions")
    first = {
        child.name: of_either(child, versions, rng) if len(versions) > 1 else child
        for child in stack.children()
    }
    return {"edge": Fleet("edge", edge_children(first["edge"], edges))} | {
        kind: Fleet(
            kind,
            worker_children(first[kind], most, f"SVC_{prefix}_WORKER", f"SVC_{prefix}_HEALTH_PORT"),
        )
        for kind, prefix in (("processors", "PROCESSORS"), ("writer", "WRITER"))
    }


def groups_of(stack: Stack) -> Groups:
    """The consumer groups of a stack."""
    processors, writer = load(ProcessorsSettings, stack.environ), load(WriterSettings, stack.environ)
    groups = {
        "processors": Group(processors.processors_app, name_of(processors, Topic.EVENTS)),
        "writer": Group(writer.writer_group, name_of(writer, Topic.GROUPED)),
    }
    return Groups(processors, groups)


async def _send(
    url: str, token: str, load: Load, events: int, rate: float, injection: asyncio.Task[None]
) -> SendReport:
    """Send at least `events`, then until the faults end, at `rate` if there is one: kills need a backlog."""
    sender = Sender(url, token, sdk="chaos/1", retry_for=600)
    size = min(SLICE, max(500, events))
    while (early := sender.report.events < events) or not injection.done():
        began = time.monotonic()
        await sender.send(batches(load.events(size)))
        if rate and not early:
            await asyncio.wait([injection], timeout=max(0.0, began + size / rate - time.monotonic()))
    return sender.report


async def drained(
    console: Console, settings: MigrateSettings, events: int, groups: Groups
) -> proof.Store | None:
    """The tables once the writer has committed its last block and nothing moves, or nothing has moved for long.

    Rows in `events` don't say that a block is complete: the writer may still compare its rollups.
    """
    began = moved = time.monotonic()
    progress, last = -1, (-1, -1)
    store: proof.Store | None = None
    polling = asyncio.create_task(groups.watch())
    try:
        while time.monotonic() - moved < STALLED_SECONDS:
            try:
                # ClickHouse may have been killed last: retry connecting like every query.
                if store is None:
                    store = await asyncio.to_thread(proof.Store, settings)
                progress = await asyncio.to_thread(proof.progress, store)
            except Exception as error:  # noqa: BLE001 - ClickHouse may still be starting
                console.print(f"  waiting: {error}"[:120])
            now = progress, groups.behind.get("writer", -1)
            if now != last:
                last, moved = now, time.monotonic()
            if progress >= 2 * events and now[1] == 0 and time.monotonic() - moved > SETTLED_SECONDS:
                break
            await asyncio.sleep(0.5)
    finally:
        polling.cancel()
        await asyncio.wait([polling])
    console.print(f"drained {time.monotonic() - began:.0f} s after the last answer")
    if store is None:
        console.print("[red]ClickHouse did not restart[/]")
    return store


async def _rebuild(operator: Operator, processors: Fleet, source: str | None, killed_after: float) -> None:
    """Stop the processors, rebuild their tables, and start as many again."""
    names = processors.present
    await asyncio.gather(*(processors.remove_worker(name, signal.SIGTERM) for name in names))
    await operator.rebuild(source, killed_after)
    await asyncio.gather(*(processors.add_worker(name).ready() for name in names))


if __name__ == "__main__":
    chaos()
