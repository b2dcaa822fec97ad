"""`python -m bench.pipeline`: events on their way from POST until rows and issues have them, compared with floors.

Two systems get the same batches, in alternation, each on fresh servers: the product, and the floor of
`bench.floors.pipeline`, the same way in a fixed, minimal form. A run ends when every event can be queried and
issues have counted each; the CPU of all processes until then is divided by the events. The least of all,
inflating, decoding and compressing the same events alone, is measured before each run. Figures are ratios of
medians to these two; `--check` compares them with a file and fails if one is worse by more than 15 %.
"""

import asyncio
import gzip
import statistics
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
from bench.load import LoadBatch, LoadFile, post, prepare_load, ready
from bench.processes import elsewhere
from bench.report import end, falls, save
from bench.servers import cache_option, data_option, headers, kept_or_temporary, samples_of
from bench.systems import System, floor, product
from schemas.event import Event
from schemas.ids import uuid7
from schemas.times import iso, to_ms

STALLED_SECONDS: Final = 60
TOLERANCE: Final = 0.15
ALONE_BATCHES: Final = 200


class RunFigures(Struct, frozen=True, kw_only=True):
    """One run: events a second, CPU in µs an event by process, bytes an event, memory in MB before and after.

    `accepted` counts until the last 202, `drained` until rows and issues have every event. `waits` are the
    seconds from POST to queryable of single events on the quiet system, `rest` the share of a core that each
    process takes at rest.
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
    """The figures compared between versions: each is better if it is greater."""

    drained_of_floor: float
    """Events a second until drained, of those of the floor."""
    least_of_cpu: float
    """The least CPU of an event, as a share of its CPU."""


@click.command()
@click.option("--events", default=300_000, show_default=True, help="Events sent.")
@data_option
@click.option("--runs", default=3, show_default=True, help="Runs of each system.")
@click.option("--floor/--no-floor", "with_floor", default=True, help="Whether the floor runs too.")
@click.option("--probes", default=0, show_default=True, help="Single events on the quiet product, each run.")
@click.option(
    "--rest",
    default=0,
    show_default=True,
    help="Seconds of rest whose CPU is measured, and again before the memory.",
)
@cache_option
@click.option("--check", type=click.Path(path_type=Path, exists=True), help="A file of ratios to keep.")
@click.option("--write", type=click.Path(path_type=Path), help="Write the ratios to such a file.")
def main(
    events: int,
    data: Path,
    runs: int,
    with_floor: bool,
    probes: int,
    rest: int,
    cache: Path,
    check: Path | None,
    write: Path | None,
) -> None:
    """Measure the pipeline end to end."""
    if not with_floor and (check or write):
        raise click.UsageError("--check and --write need the floor")
    console = Console(highlight=False)
    samples = samples_of(data)
    load = prepare_load(samples, events)
    encoded = [msgspec.json.encode(sample) for sample in samples]
    alone: list[float] = []
    console.print(
        f"{load.count} events of {load.size / load.count:.0f} bytes, {load.distinct} distinct, "
        f"in {len(load.requests)} gzip batches"
    )
    figures: list[RunFigures] = []
    with kept_or_temporary(None) as temporary:
        file = temporary / "load"
        file.write_bytes(msgspec.msgpack.encode(load))
        for number in range(runs):
            alone.append(measure_alone(load.requests[:ALONE_BATCHES], encoded))
            console.print(f"inflate, decode and compress alone: {alone[-1]:.1f} µs of CPU an event")
            systems = [product(temporary / f"product{number}", cache)]
            if with_floor:
                systems.append(floor(temporary / f"floor{number}", cache, encoded))
            for system in systems:
                singles = probes if system.name == "product" else 0
                figures.append(asyncio.run(_run(system, file, load, singles, rest)))
                _show(console, figures[-1], alone[-1])
    if not with_floor:
        return
    ratios = _ratios(figures, statistics.median(alone))
    console.print(
        f"[bold]drained {ratios.drained_of_floor:.2f} of the floor, "
        f"CPU {1 / ratios.least_of_cpu:.2f} × the least[/]"
    )
    if write is not None:
        save(ratios, write)
    if check is not None:
        end(compare(ratios, msgspec.json.decode(check.read_bytes(), type=PipelineRatios)))


def measure_alone(requests: Sequence[LoadBatch], samples: list[bytes]) -> float:
    """CPU microseconds an event of inflating, decoding and compressing each alone, in this process."""
    wrapper = msgspec.json.Decoder(dict[str, list[msgspec.Raw]])
    event, codec = msgspec.json.Decoder(Event), records.Codec(records.shared_by(samples))
    count, began = 0, time.process_time()
    for request in requests:
        for raw in wrapper.decode(gzip.decompress(request.body))["events"]:
            event.decode(raw)
            codec.compress(bytes(raw))
            count += 1
    return (time.process_time() - began) / count * 1e6


async def _run(system: System, file: Path, load: LoadFile, probes: int, rest: int) -> RunFigures:
    """One run on fresh servers. Raises RuntimeError if something was refused."""
    with elsewhere() as client:
        try:
            await system.start()
            await asyncio.wrap_future(client.submit(ready, file))
            resting = await _at_rest(system, rest)
            fresh, before = system.memory(), system.cpu()
            posting = asyncio.wrap_future(client.submit(post, file, system.url, list(system.tokens)))
            await drained(system, load.distinct)
            ended, after = time.time(), system.cpu()
            sent = await posting
            if sent.refused:
                raise RuntimeError(f"{sent.refused} requests were refused")
            await asyncio.sleep(rest)
            return RunFigures(
                system=system.name,
                accepted=load.count / sent.seconds,
                drained=load.count / (ended - sent.began),
                cpu={name: (after[name] - before[name]) / load.count * 1e6 for name in after},
                stored={name: size / load.distinct for name, size in system.stored_bytes().items()},
                memory_before={name: size / 1e6 for name, size in fresh.items()},
                memory_after={name: size / 1e6 for name, size in system.memory().items()},
                waits=await _probe(system, load, probes),
                rest=resting,
            )
        finally:
            await system.stop()


async def drained(system: System, distinct: int) -> None:
    """Wait until rows and issues have every event. Raises RuntimeError if there is no progress."""
    last, moved = (-1, 0), time.monotonic()
    while last != (distinct, distinct):
        stored = await asyncio.to_thread(system.stored)
        now = stored, await asyncio.to_thread(system.counted) if stored == distinct else 0
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
            began = time.perf_counter()
            async with session.post(system.url, data=body, headers=headers(system.tokens[0])) as answer:
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


def compare(ratios: PipelineRatios, kept: PipelineRatios) -> list[str]:
    """A sentence for each ratio that is worse than the kept one by more than the tolerance."""
    least = {name: ratio * (1 - TOLERANCE) for name, ratio in msgspec.structs.asdict(kept).items()}
    return falls(msgspec.structs.asdict(ratios), least)


def _show(console: Console, run: RunFigures, alone: float) -> None:
    console.print(
        f"[bold]{run.system}: {run.drained:,.0f} events/s[/] until rows and issues have them, "
        f"{run.accepted:,.0f} accepted"
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
            f"POST to queryable, quiet: p50 {statistics.median(run.waits):.2f} s, at most {run.waits[-1]:.2f} s"
        )


if __name__ == "__main__":
    main()
