"""`python -m bench.growth`: what an event costs as the system grows: more workers, edges, projects, or events that it holds.

Each `--workers`, `--edges` and `--projects` is a run of its own on fresh servers; all `--held` are one run, in which the same events are sent
under new ids until so many are there, and then once more to be measured. All runs have the same number of issues.
"""

import asyncio
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
import msgspec
from rich.console import Console

from bench.load import PROJECTS, LoadFile, prepare
from bench.pipeline import RunFigures, client_of, drained, measure, post, sent_by
from bench.systems import Product
from cli.demo.sample_events import FILE, load_samples
from cli.send.batches import read_lines

CONNECTIONS: Final = 24
RENEWED: Final = "--renewed"


@click.command()
@click.option("--events", default=300_000, show_default=True, help="Events measured.")
@click.option(
    "--data", type=click.Path(path_type=Path, exists=True), default=FILE, help="JSONL file of events."
)
@click.option("--workers", multiple=True, type=int, help="Processors, and as many writers.")
@click.option("--edges", multiple=True, type=int, help="Processes of the edge.")
@click.option("--projects", multiple=True, type=int)
@click.option("--held", multiple=True, type=int, help="Events that the system holds before, in rising order.")
@click.option("--cache", type=click.Path(path_type=Path), default=Path(".cache"), help="Kafka's jars.")
def main(
    events: int,
    data: Path,
    workers: Sequence[int],
    edges: Sequence[int],
    projects: Sequence[int],
    held: Sequence[int],
    cache: Path,
) -> None:
    """Measure the cost of an event at other sizes of the system."""
    console = Console(highlight=False)
    samples = load_samples() if data == FILE else [msgspec.json.decode(line) for line in read_lines(data)]
    cases = [
        *((f"{count} workers", PROJECTS, count, 1) for count in workers),
        *((f"{count} edges", PROJECTS, 1, count) for count in edges),
        *((f"{count} projects", count, 1, 1) for count in projects),
    ]
    with tempfile.TemporaryDirectory(prefix="growth-") as temporary:
        file = Path(temporary, "load")
        for number, (title, many, working, listening) in enumerate(cases):
            load = prepare(samples, events, projects=many)
            file.write_bytes(msgspec.msgpack.encode(load))
            settings = {"SVC_EDGE_WORKERS": str(listening)}
            product = Product(Path(temporary, str(number)), cache, settings, many, working)
            for run in asyncio.run(_runs(product, file, load, [0])):
                _show(console, title, run)
        if held:
            load = prepare(samples, events)
            file.write_bytes(msgspec.msgpack.encode(load))
            product = Product(Path(temporary, "held"), cache, {})
            for size, run in zip(held, asyncio.run(_runs(product, file, load, held)), strict=True):
                _show(console, f"{size} held", run)


async def _runs(product: Product, file: Path, load: LoadFile, sizes: Sequence[int]) -> list[RunFigures]:
    """The figures at each size."""
    runs: list[RunFigures] = []
    there = 0
    try:
        await product.start()
        for size in sizes:
            while there < size:
                client = await client_of(product, file, CONNECTIONS, RENEWED)
                post(client)
                await sent_by(client)
                there += load.distinct
            await drained(product, there)
            client = await client_of(product, file, CONNECTIONS, RENEWED)
            runs.append(await measure(product, client, load, held=there))
            there += load.distinct
    finally:
        await product.stop()
    return runs


def _show(console: Console, title: str, run: RunFigures) -> None:
    cpu: defaultdict[str, float] = defaultdict(float)
    for name, each in run.cpu.items():
        cpu[name.rstrip("0123456789")] += each
    parts = ", ".join(f"{name} {each:.1f}" for name, each in cpu.items() if each >= 0.1)
    memory = sum(each for name, each in run.memory_after.items() if name not in {"kafka", "clickhouse"})
    console.print(
        f"[bold]{title}[/]: {run.drained:,.0f} events/s, {run.cpu_together:.1f} µs an event ({parts}); "
        f"Kafka {run.bytes_in('Kafka'):.0f}, ClickHouse {run.bytes_in('ClickHouse'):.0f} B an event; {memory:.0f} MB of ours"
    )


if __name__ == "__main__":
    main()
