"""`python -m bench.pipeline`: the pipeline end to end on this machine, from POST until the last event can be queried.

Prints events per second, each stage's CPU per event, and as the floor of the same run the cost of inflating, decoding and
compressing the same events on one core. Then the latency of single events from POST to queryable on the idle system.
"""

import asyncio
import gzip
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import aiohttp
import click
import msgspec
import psutil
from rich.console import Console
from rich.table import Table

from bench.chaos import proof
from bench.chaos.__main__ import prepare
from bench.chaos.load import Load
from cli.demo.sample_events import FILE, load_samples
from cli.projects import create_project
from cli.send.batches import SendBatch, batches, read_lines
from local.stack import Stack
from local.supervisor import Supervisor
from schemas import payload
from schemas.environment import load
from schemas.event import Event
from schemas.settings import MigrateSettings

STALLED_SECONDS = 60


@click.command()
@click.option("--events", default=100_000, show_default=True, help="Events sent.")
@click.option("--repeats", default=0.04, show_default=True, help="Share of repeated ids.")
@click.option(
    "--data", type=click.Path(path_type=Path, exists=True), default=FILE, help="JSONL file of events."
)
@click.option(
    "--past", default=60, show_default=True, help="Maximum age of the events in seconds; most are recent."
)
@click.option("--connections", default=8, show_default=True, help="Requests in flight.")
@click.option("--probes", default=40, show_default=True, help="Single events on the idle system.")
@click.option("--cache", type=click.Path(path_type=Path), default=Path(".cache"), help="Kafka's jars.")
def pipeline(
    events: int, repeats: float, data: Path, past: int, connections: int, probes: int, cache: Path
) -> None:
    """Measure the pipeline end to end."""
    samples = load_samples() if data == FILE else [msgspec.json.decode(line) for line in read_lines(data)]
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        asyncio.run(
            measure(
                prepare(Path(folder), cache),
                Load(samples, 1, repeats, timedelta(seconds=past)),
                events,
                connections,
                probes,
            )
        )


async def measure(stack: Stack, stream: Load, events: int, connections: int, probes: int) -> None:
    """One run on a fresh stack."""
    console = Console(highlight=False)
    stream_batches = [*batches(stream.events(events))]
    bodies = [(batch, batch.body) for batch in stream_batches]
    size = sum(len(event) for batch in stream_batches for event in batch.events) / events
    console.print(
        f"{events} events of {size:.0f} bytes, {len(stream.ids)} distinct, in {len(bodies)} gzip batches"
    )
    floor = alone(bodies[: max(20, len(bodies) // 20)])
    supervisor = Supervisor(stack.children())
    async with AsyncExitStack() as cleanup:
        cleanup.push_async_callback(supervisor.stop)
        await supervisor.start()
        settings = load(MigrateSettings, stack.environ)
        project = await create_project(settings, "bench", rate_limit=1_000_000)
        store = proof.Store(settings)
        cleanup.callback(store.close)
        headers = {
            "Authorization": f"Bearer {project.token}",
            "Svc-Sdk": "bench/1",
            "Content-Type": "application/json",
            "Content-Encoding": "gzip",
        }
        async with aiohttp.ClientSession(headers=headers) as session:
            url = f"{stack.ingest_url}/v1/events:batch"
            await _known(session, url)
            before, began = cpu(supervisor), time.perf_counter()
            await post(session, url, [body for _, body in bodies], connections)
            answered = time.perf_counter() - began
            await drained(store, len(stream.ids))
            seconds, after = time.perf_counter() - began, cpu(supervisor)
            show(console, events, answered, seconds, {n: after[n] - before[n] for n in after}, floor)
            console.print(_stored_bytes(stack, store, len(stream.ids)))
            waits = await probe(session, url, store, stream, probes)
    if waits:
        q = sorted(waits)
        console.print(
            f"POST to queryable, idle: p50 {q[len(q) // 2]:.2f} s, p99 {q[int(len(q) * 0.99)]:.2f} s ({len(q)} events)"
        )


def alone(bodies: list[tuple[SendBatch, bytes]]) -> float:
    """CPU microseconds per event of inflate + decode + compress in this process."""
    wrapper, event = msgspec.json.Decoder(dict[str, list[msgspec.Raw]]), msgspec.json.Decoder(Event)
    count, began = 0, time.process_time()
    for _, body in bodies:
        for raw in wrapper.decode(gzip.decompress(body))["events"]:
            event.decode(raw)
            payload.compress(bytes(raw))
            count += 1
    return (time.process_time() - began) / count * 1e6


async def _known(session: aiohttp.ClientSession, url: str) -> None:
    empty = gzip.compress(b'{"events":[]}')
    for _ in range(200):
        async with session.post(url, data=empty) as answer:
            if answer.status == 202:
                return
        await asyncio.sleep(0.05)
    raise RuntimeError("the edge does not accept the new token")


async def post(session: aiohttp.ClientSession, url: str, bodies: list[bytes], connections: int) -> None:
    """Post all bodies, `connections` at a time. Raises RuntimeError for any answer but 202."""
    waiting = iter(bodies)

    async def work() -> None:
        for body in waiting:
            async with session.post(url, data=body) as answer:
                if answer.status != 202:
                    raise RuntimeError(f"{answer.status}: {await answer.text()}")

    async with asyncio.TaskGroup() as group:
        for _ in range(connections):
            group.create_task(work())


async def drained(store: proof.Store, distinct: int) -> None:
    """Wait until every event can be queried. Raises RuntimeError if there is no progress."""
    last, moved = -1, time.monotonic()
    while (rows := await asyncio.to_thread(proof.stored, store)) < distinct:
        if rows != last:
            last, moved = rows, time.monotonic()
        if time.monotonic() - moved > STALLED_SECONDS:
            raise RuntimeError(f"stalled at {rows} of {distinct} events")
        await asyncio.sleep(0.1)


def cpu(supervisor: Supervisor) -> dict[str, float]:
    """CPU seconds of each child and its descendants."""
    used = {}
    for name, status in supervisor.statuses.items():
        if status.pid is not None:
            root = psutil.Process(status.pid)
            used[name] = sum(sum(p.cpu_times()[:2]) for p in [root, *root.children(recursive=True)])
    return used


def show(
    console: Console, events: int, answered: float, seconds: float, used: dict[str, float], floor: float
) -> None:
    """Print one run."""
    console.print(
        f"[bold]{events / seconds:,.0f} events/s[/] until queryable, {events / answered:,.0f} events/s until answered 202"
    )
    table = Table("stage", "CPU µs an event", "of the floor")
    for name, seconds_used in used.items():
        each = seconds_used / events * 1e6
        table.add_row(name, f"{each:.1f}", f"{each / floor:.2f} ×")
    total = sum(used.values()) / events * 1e6
    table.add_row("together", f"{total:.1f}", f"{total / floor:.2f} ×")
    table.add_row("floor: inflate + decode + compress alone", f"{floor:.1f}", "1 ×")
    console.print(table)


def _stored_bytes(stack: Stack, store: proof.Store, events: int) -> Table:
    """What an event takes on the disk of Kafka, in one copy, and of ClickHouse."""
    topics = Counter[str]()
    for log in (stack.data_dir / "kafka" / "data").glob("*-*/*.log"):
        topics[f"Kafka, {log.parent.name.rpartition('-')[0]}"] += log.stat().st_size
    tables = "SELECT table, sum(bytes_on_disk) FROM system.parts WHERE active AND database = currentDatabase() GROUP BY table"
    sizes = topics + Counter({f"ClickHouse, {name}": int(size) for name, size in store.rows(tables)})
    table = Table("stored", "bytes an event")
    for name, size in sizes.most_common():
        if size >= events:
            table.add_row(name, f"{size / events:.0f}")
    return table


async def probe(
    session: aiohttp.ClientSession, url: str, store: proof.Store, stream: Load, count: int
) -> list[float]:
    """Seconds from POST to queryable of single events, one after another."""
    waits = []
    for _ in range(count):
        known = set(stream.ids)
        line = next(stream.events(1))
        fresh = stream.ids - known
        if not fresh:
            continue
        (wanted,) = fresh
        began = time.perf_counter()
        await post(session, url, [gzip.compress(b'{"events":[' + line + b"]}")], 1)
        while not await asyncio.to_thread(_is_stored, store, wanted):
            await asyncio.sleep(0.01)
        waits.append(time.perf_counter() - began)
    return waits


def _is_stored(store: proof.Store, event: UUID) -> bool:
    return store.number(f"SELECT count() FROM events WHERE id = toUInt128('{event.int}')") > 0


if __name__ == "__main__":
    pipeline()
