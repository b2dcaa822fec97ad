"""`python -m bench.chaos`: real servers, full load, random kills; exit status 0 only if every count is exact."""

import asyncio
import logging
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from itertools import cycle
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec import Struct
from rich.console import Console

from bench.chaos import proof
from bench.chaos.cluster import cluster
from bench.chaos.commands import KILLED_SECONDS, Operator
from bench.chaos.faults import FaultInjector
from bench.chaos.fleet import Fleet, edge_children, of_either, worker_children
from bench.chaos.groups import Group, Groups
from bench.chaos.load import Load
from bench.chaos.messages import Inbox, set_rules
from broker.client import name_of
from cli.demo.sample_events import FILE, load_samples
from cli.projects import CreatedProject, create_project
from cli.send.batches import batches, read_lines
from cli.send.sender import Sender, SendReport
from local.ports import free_port
from local.stack import Stack
from local.supervisor import Supervisor
from schemas.environment import load
from schemas.settings import MigrateSettings, ProcessorsSettings, WriterSettings
from schemas.topics import Topic

PORTS = ("SVC_INGEST_PORT", "SVC_DASHBOARD_PORT")
SLICE = 5_000
ROOT = Path(__file__).parents[2]
EDGES = 2
STALLED_SECONDS = 180
SETTLED_SECONDS = 5


@click.command()
@click.option("--events", default=200_000, show_default=True, help="Events sent, repeats included.")
@click.option(
    "--rate", default=0, help="Events a second once EVENTS are sent, until the last fault; 0: no limit."
)
@click.option("--repeats", default=0.2, show_default=True, help="Share of repeated ids.")
@click.option("--kills", default=30, show_default=True, help="Processes killed with -9.")
@click.option("--broker-restarts", default=2, show_default=True)
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Processors, and writers, at the start.",
)
@click.option("--most-workers", default=3, show_default=True, help="Processors, and writers, at most.")
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
    "--beside",
    type=click.Path(path_type=Path, exists=True, file_okay=False, resolve_path=True),
    help="A checkout of another version: each start of a process, and each command, is of either.",
)
@click.option(
    "--rebuild/--no-rebuild",
    default=True,
    help="At the end, rebuild the processors' tables while events arrive.",
)
@click.option("--seed", type=int, help="Reproduces a run's choices; default: random.")
@click.option(
    "--data", type=click.Path(path_type=Path, exists=True), default=FILE, help="JSONL file of events."
)
@click.option("--data-dir", type=click.Path(path_type=Path), help="Keep everything here for inspection.")
@click.option("--cache", type=click.Path(path_type=Path), default=Path(".cache"), help="Kafka's jars.")
def chaos(seed: int | None, data_dir: Path | None, **options: Any) -> None:
    """Kill processes at random under full load and operate the system meanwhile; then prove that every event was counted exactly once."""
    seed = random.SystemRandom().randrange(1 << 31) if seed is None else seed
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"seed {seed}")
    # Kills are expected here: silence the supervisor's warnings.
    logging.getLogger("local").setLevel(logging.ERROR)
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        result = asyncio.run(run(console, seed, data_dir or Path(folder), **options))
    console.print(
        f"seed {seed}: {'[green]exact[/]' if result.exact else '[red]NOT exact[/]'}, {result.disorder}"
    )
    sys.exit(0 if result.exact else 1)


class Result(Struct, frozen=True):
    """Whether every claim held, and a summary of the faults."""

    exact: bool
    disorder: str


async def run(
    console: Console,
    seed: int,
    data_dir: Path,
    *,
    events: int,
    rate: int,
    repeats: float,
    kills: int,
    broker_restarts: int,
    workers: int,
    most_workers: int,
    scalings: int,
    commands: int,
    spread: bool,
    beside: Path | None,
    rebuild: bool,
    data: Path,
    cache: Path,
) -> Result:
    """One run on its own servers."""
    servers, given = cluster(data_dir, cache) if spread else ([], {})
    cleanup, inbox = AsyncExitStack(), Inbox()
    stack = prepare(data_dir, cache, **given, **await cleanup.enter_async_context(inbox.listening()))
    edges = EDGES if spread else 1
    versions = [ROOT, *([beside] if beside else [])]
    fleets = fleets_of(stack, most_workers, edges, versions, seed)
    supervisor = Supervisor([*servers, *(child for child in stack.children() if child.name not in fleets)])
    async with cleanup:
        cleanup.push_async_callback(supervisor.stop)
        await supervisor.start()
        for fleet in fleets.values():
            cleanup.push_async_callback(fleet.stop)
        await asyncio.gather(
            *(
                fleet.add(name).ready()
                for kind, fleet in fleets.items()
                for name in fleet.absent[: edges if kind == "edge" else workers]
            )
        )
        ingest = [f"http://127.0.0.1:{one['SVC_INGEST_PORT']}" for one in fleets["edge"].environments]
        settings = load(MigrateSettings, stack.environ)
        projects = await _projects(settings)
        samples = load_samples() if data == FILE else [msgspec.json.decode(line) for line in read_lines(data)]
        loads = [Load(samples, seed + n, repeats) for n in range(len(projects))]
        groups = groups_of(stack)
        faults = FaultInjector(
            supervisor,
            fleets,
            groups,
            seed,
            kills,
            broker_restarts,
            (workers, most_workers, scalings),
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

        injection = asyncio.create_task(faults.run())
        operation = asyncio.create_task(operator.run())
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
        # Activities of an earlier version don't say enough to be causes.
        received = [] if beside else await inbox.claims(settings, store, console)
        more = [*faults.claims(), *operator.claims(store.comments()), *received]
        proven = await _verify(console, store, (ids, accepted, erasable), more)
        console.print(f"restarts {faults.restarts}")
        return Result(proven and not refused, faults.summary)


async def _projects(settings: MigrateSettings) -> list[CreatedProject]:
    projects = [await create_project(settings, f"chaos {n}", rate_limit=1_000_000) for n in range(3)]
    await set_rules(settings, [project.id for project in projects])
    return projects


def prepare(data_dir: Path, cache: Path, **given: str) -> Stack:
    """A separate stack on free ports, with Kafka's jars from `cache` and the settings in `given`."""
    data_dir.mkdir(parents=True, exist_ok=True)
    cache.mkdir(parents=True, exist_ok=True)
    if not (data_dir / "cache").exists():
        (data_dir / "cache").symlink_to(cache.resolve())
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SVC_")}
    return Stack(data_dir.resolve(), environ | {name: str(free_port()) for name in PORTS} | given)


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
    """Send at least `events`, and continue until the end of the faults, at `rate` if there is one: each kill should meet a backlog."""
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
    """The tables once the writer has committed the last block and nothing moves any more, or once nothing has moved for long.

    Rows in `events` don't say that a block is complete: the writer may still compare its rollups.
    """
    began = moved = time.monotonic()
    progress, last = -1, (-1, -1)
    store: proof.Store | None = None
    polling = asyncio.create_task(groups.run())
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
    await asyncio.gather(*(processors.remove(name, signal.SIGTERM) for name in names))
    await operator.rebuild(source, killed_after)
    await asyncio.gather(*(processors.add(name).ready() for name in names))


async def _verify(
    console: Console,
    store: proof.Store,
    sent: tuple[set[Any], int, set[Any]],
    more: list[proof.Claim],
) -> bool:
    claims = [*await asyncio.to_thread(proof.claims, store, *sent), *more]
    store.close()
    for claim in claims:
        mark = "[green]ok[/]" if claim.holds else "[red]NO[/]"
        console.print(f"  {mark} {claim.text}: {claim.expected} expected, {claim.found} found")
    return all(claim.holds for claim in claims)


if __name__ == "__main__":
    chaos()
