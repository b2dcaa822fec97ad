"""`python -m bench.pipeline`: the way of events on this machine, from POST until rows and issues have them, beside its floors.

Two systems get the same batches, in alternation, each on fresh servers: the product, and the floor of `bench.floors.pipeline`, the same way
in a fixed, minimal form. A run ends when every event can be queried and issues have counted each; the CPU of all processes until then is
divided by the events. The least of all, inflating, decoding and compressing the same events alone, is measured in the same run. Figures
are ratios to these two; `--check` compares them with a file and fails if one is worse by more than 15 %.
"""

import asyncio
import gzip
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import aiohttp
import click
import msgspec
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from bench.floors.pipeline import records
from bench.load import SHAPES, LoadBatch, LoadFile, SendResult, Shape, prepare
from bench.systems import Floor, Product, System
from cli.demo.sample_events import FILE, load_samples
from cli.send.batches import read_lines
from schemas.ids import uuid7
from schemas.times import iso, to_ms

STALLED_SECONDS: Final = 60
TOLERANCE: Final = 0.15
ALONE_BATCHES: Final = 200


class RunFigures(Struct, frozen=True, rename="camel", kw_only=True):
    """One run: events a second, CPU in µs an event by process, bytes an event, and memory in MB before and after.

    `accepted` counts until the last 202, `drained` until rows and issues have every event. `waits` are the seconds from POST to queryable
    of single events on the quiet system, `rest` the share of a core that each process takes at rest.
    """

    system: str
    accepted: float
    drained: float
    cpu: dict[str, float]
    stored: dict[str, float]
    memory_before: dict[str, float]
    memory_after: dict[str, float]
    waits: list[float]
    rest: dict[str, float]

    @property
    def cpu_together(self) -> float:
        """CPU of all processes, µs an event."""
        return sum(self.cpu.values())

    def bytes_in(self, server: str) -> float:
        """Bytes an event on the disk of Kafka or ClickHouse."""
        return sum(size for name, size in self.stored.items() if name.startswith(server))


class PipelineRatios(Struct, frozen=True, rename="camel", kw_only=True):
    """What is compared between versions: each is better if it is greater."""

    drained_of_floor: float
    """Events a second until drained, of those of the floor."""
    least_of_cpu: float
    """The least CPU of an event, of what it takes."""


class PipelineReport(Struct, frozen=True, rename="camel", kw_only=True):
    """All runs, the least CPU of an event alone (µs), and the ratios of the medians."""

    events: int
    event_bytes: float
    shape: Shape
    alone: float
    runs: list[RunFigures]
    ratios: PipelineRatios | None


@click.command()
@click.option("--events", default=300_000, show_default=True, help="Events sent.")
@click.option("--shape", type=click.Choice(SHAPES), default="real", show_default=True)
@click.option("--repeats", default=0.04, show_default=True, help="Share of repeated ids.")
@click.option(
    "--data", type=click.Path(path_type=Path, exists=True), default=FILE, help="JSONL file of events."
)
@click.option("--runs", default=3, show_default=True, help="Runs of each system.")
@click.option("--floor/--no-floor", default=True, help="Whether the floor runs too.")
@click.option("--connections", default=24, show_default=True, help="Requests in flight.")
@click.option("--probes", default=0, show_default=True, help="Single events on the quiet product, each run.")
@click.option(
    "--rest",
    default=0,
    show_default=True,
    help="Seconds of rest whose CPU is measured, and again before the memory.",
)
@click.option("--set", "given", multiple=True, metavar="NAME=VALUE", help="A setting of the product.")
@click.option("--cache", type=click.Path(path_type=Path), default=Path(".cache"), help="Kafka's jars.")
@click.option("--json", "output", type=click.Path(path_type=Path), help="Write the report here too.")
@click.option("--check", type=click.Path(path_type=Path, exists=True), help="A file of ratios to keep.")
def main(
    events: int,
    shape: Shape,
    repeats: float,
    data: Path,
    runs: int,
    floor: bool,
    connections: int,
    probes: int,
    rest: int,
    given: Sequence[str],
    cache: Path,
    output: Path | None,
    check: Path | None,
) -> None:
    """Measure the pipeline end to end."""
    console = Console(highlight=False)
    samples = load_samples() if data == FILE else [msgspec.json.decode(line) for line in read_lines(data)]
    settings = dict(setting.split("=", 1) for setting in given)
    load = prepare(samples, events, shape, repeats)
    count = sum(request.events for request in load.requests)
    encoded = [msgspec.json.encode(sample) for sample in samples]
    alone = measure_alone(load.requests[:ALONE_BATCHES], encoded)
    console.print(
        f"{count} events of {load.size / count:.0f} bytes ({shape}), {load.distinct} distinct, in {len(load.requests)} gzip batches"
    )
    console.print(f"inflate, decode and compress alone: {alone:.1f} µs of CPU an event")
    figures: list[RunFigures] = []
    with tempfile.TemporaryDirectory(prefix="bench-") as temporary:
        file = Path(temporary, "load")
        file.write_bytes(msgspec.msgpack.encode(load))
        for number in range(runs):
            for kind in ("product", *(("floor",) if floor else ())):
                folder = Path(temporary, f"{kind}{number}")
                system: System = (
                    Product(folder, cache, settings) if kind == "product" else Floor(folder, cache, encoded)
                )
                run = asyncio.run(
                    _run(system, file, load, connections, probes if kind == "product" else 0, rest)
                )
                _show(console, run, alone)
                figures.append(run)
    report = PipelineReport(
        events=count,
        event_bytes=load.size / count,
        shape=shape,
        alone=alone,
        runs=figures,
        ratios=_ratios(figures, alone) if floor else None,
    )
    if report.ratios is not None:
        console.print(
            f"[bold]drained {report.ratios.drained_of_floor:.2f} of the floor, CPU {1 / report.ratios.least_of_cpu:.2f} × the least[/]"
        )
    if output is not None:
        output.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
    if check is not None and report.ratios is not None:
        sys.exit(
            compare(console, report.ratios, msgspec.json.decode(check.read_bytes(), type=PipelineRatios))
        )


def measure_alone(requests: Sequence[LoadBatch], samples: list[bytes]) -> float:
    """CPU microseconds an event of inflating, decoding and compressing each alone, in this process."""
    wrapper = msgspec.json.Decoder(dict[str, list[msgspec.Raw]])
    event, codec = msgspec.json.Decoder(records.FloorEvent), records.Codec(records.train(samples))
    count, began = 0, time.process_time()
    for request in requests:
        for raw in wrapper.decode(gzip.decompress(request.body))["events"]:
            event.decode(raw)
            codec.compress(bytes(raw))
            count += 1
    return (time.process_time() - began) / count * 1e6


async def _run(
    system: System, file: Path, load: LoadFile, connections: int, probes: int, rest: int
) -> RunFigures:
    """One run on fresh servers."""
    try:
        await system.start()
        run = await measure(system, await client_of(system, file, connections), load, rest=rest)
        return msgspec.structs.replace(run, waits=await _probe(system, load, probes))
    finally:
        await system.stop()


async def client_of(
    system: System, file: Path, connections: int, *options: str
) -> asyncio.subprocess.Process:
    """A client that is ready to post the file."""
    tokens = file.with_name("tokens")
    tokens.write_text("\n".join(system.tokens), encoding="ascii")
    client = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.load", str(file), system.url, str(connections), str(tokens), *options),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert client.stdout is not None
    await client.stdout.readline()
    return client


async def sent_by(client: asyncio.subprocess.Process) -> SendResult:
    """What the client says once it has posted all. Raises RuntimeError if something was refused."""
    assert client.stdout is not None
    sent = msgspec.json.decode(await client.stdout.readline(), type=SendResult)
    await client.wait()
    if sent.refused:
        raise RuntimeError(f"{sent.refused} requests were refused")
    return sent


def post(client: asyncio.subprocess.Process) -> None:
    """Let it begin."""
    assert client.stdin is not None
    client.stdin.write(b"go\n")


async def measure(
    system: System, client: asyncio.subprocess.Process, load: LoadFile, *, held: int = 0, rest: int = 0
) -> RunFigures:
    """The figures of a load that a client posts to a system that holds so many events already."""
    resting = await _at_rest(system, rest)
    fresh, before = system.memory(), system.cpu()
    post(client)
    await drained(system, held + load.distinct)
    ended, after = time.time(), system.cpu()
    sent = await sent_by(client)
    count = sum(request.events for request in load.requests)
    await asyncio.sleep(rest)
    return RunFigures(
        system=system.name,
        accepted=count / sent.seconds,
        drained=count / (ended - sent.began),
        cpu={name: (after[name] - before[name]) / count * 1e6 for name in after},
        stored={name: size / (held + load.distinct) for name, size in system.stored_bytes().items()},
        memory_before={name: size / 1e6 for name, size in fresh.items()},
        memory_after={name: size / 1e6 for name, size in system.memory().items()},
        waits=[],
        rest=resting,
    )


async def drained(system: System, distinct: int) -> None:
    """Wait until rows and issues have every event. Raises RuntimeError if there is no progress, as after one too many."""
    last, moved = (-1, 0), time.monotonic()
    while last != (distinct, distinct):
        stored = await asyncio.to_thread(lambda: system.stored)
        now = stored, await asyncio.to_thread(lambda: system.counted) if stored == distinct else 0
        if now != last:
            last, moved = now, time.monotonic()
        elif time.monotonic() - moved > STALLED_SECONDS:
            raise RuntimeError(
                f"{system.name} is stalled at {last[0]} rows and {last[1]} of {distinct} events"
            )
        await asyncio.sleep(0.2)


async def _at_rest(system: System, seconds: int) -> dict[str, float]:
    """The share of a core that each process takes while nothing comes."""
    if not seconds:
        return {}
    await asyncio.sleep(seconds / 2)
    before = system.cpu()
    await asyncio.sleep(seconds)
    return {name: (used - before[name]) / seconds for name, used in system.cpu().items()}


async def _probe(system: System, load: LoadFile, count: int) -> list[float]:
    """Seconds from POST to queryable of single events, one after another."""
    waits: list[float] = []
    template = msgspec.json.decode(gzip.decompress(load.requests[0].body))["events"][0]
    async with aiohttp.ClientSession() as session:
        for _ in range(count):
            body, number = _single(template)
            headers = {
                "Authorization": f"Bearer {system.tokens[0]}",
                "Svc-Sdk": "bench/1",
                "Content-Type": "application/json",
            }
            began = time.perf_counter()
            async with session.post(system.url, data=body, headers=headers) as answer:
                answer.raise_for_status()
            sql = f"SELECT count() FROM events WHERE id = toUInt128('{number}')"
            while not await asyncio.to_thread(system.number, sql):
                await asyncio.sleep(0.01)
            waits.append(time.perf_counter() - began)
    return sorted(waits)


def _single(template: dict[str, object]) -> tuple[bytes, int]:
    """A batch of one new event, and the value of its id."""
    now = to_ms(datetime.now(UTC))
    number = uuid7(now)
    event = {**template, "id": str(number), "timestamp": iso(now)}
    return msgspec.json.encode({"events": [event]}), number.int


def _ratios(runs: Sequence[RunFigures], alone: float) -> PipelineRatios:
    def median(kind: str, figure: str) -> float:
        return float(statistics.median(getattr(run, figure) for run in runs if run.system == kind))

    return PipelineRatios(
        drained_of_floor=median("product", "drained") / median("floor", "drained"),
        least_of_cpu=alone / median("product", "cpu_together"),
    )


def compare(console: Console, ratios: PipelineRatios, kept: PipelineRatios) -> int:
    """The exit status: 1 if a ratio is worse than the kept one by more than the tolerance, else 0."""
    worse = [
        f"{name} is {found:.3f}, it was {expected:.3f}"
        for name, expected in msgspec.structs.asdict(kept).items()
        if (found := getattr(ratios, name)) < expected * (1 - TOLERANCE)
    ]
    for line in worse:
        console.print(f"[red]worse: {line}[/]")
    return 1 if worse else 0


def _show(console: Console, run: RunFigures, alone: float) -> None:
    console.print(
        f"[bold]{run.system}: {run.drained:,.0f} events/s[/] until rows and issues have them, {run.accepted:,.0f} accepted"
    )
    table = Table("", "CPU, µs an event", "× the least", "MB fresh", "MB after", "% of a core at rest")
    for name, each in run.cpu.items():
        table.add_row(
            name,
            f"{each:.1f}",
            f"{each / alone:.2f}",
            f"{run.memory_before[name]:.0f}",
            f"{run.memory_after[name]:.0f}",
            f"{run.rest[name] * 100:.1f}" if run.rest else "",
        )
    table.add_row("together", f"{run.cpu_together:.1f}", f"{run.cpu_together / alone:.2f}")
    console.print(table)
    sizes = sorted(run.stored.items(), key=lambda item: -item[1])
    console.print(
        f"bytes an event: Kafka {run.bytes_in('Kafka'):.0f}, ClickHouse {run.bytes_in('ClickHouse'):.0f}  "
        f"({'; '.join(f'{name} {size:.0f}' for name, size in sizes if size >= 1)})"
    )
    if run.waits:
        console.print(
            f"POST to queryable, quiet: p50 {statistics.median(run.waits):.2f} s, at most {run.waits[-1]:.2f} s ({len(run.waits)} events)"
        )


if __name__ == "__main__":
    main()
