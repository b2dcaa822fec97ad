"""The edge under load, with its floors from the same run: `python -m bench.edge [--data FILE] [--seconds N]`.

One edge process on fresh servers, and the load in a separate process. Prints events per second and CPU
microseconds per event for single events and for gzip batches, and the delays at 70 % of the highest rate.
"""

import asyncio
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click
import msgspec
from msgspec import Struct

from bench.edge_load import LoadPlan, quantile, request, run_load
from bench.floors import edge as floors
from bench.processes import SPAWN, cpu_seconds, elsewhere
from bench.servers import (
    cache_option,
    data_option,
    headers,
    kept_or_temporary,
    prepare,
    samples_of,
    supervised,
)
from broker.client import name_of
from cli.projects import create_project
from local.local_stack import Stack
from local.ports import free_port
from schemas.environment import load
from schemas.settings import MigrateSettings
from schemas.topics import Topic

CHILDREN: Final = {"kafka", "clickhouse", "migrate", "edge"}
CONNECTIONS: Final = 32
FLEET: Final = 200
"""Connections of a fleet that sends event by event."""


@click.command()
@data_option
@click.option("--seconds", type=float, default=10.0, show_default=True, help="Length of each run.")
@cache_option
def main(data: Path, seconds: float, cache: Path) -> None:
    """Measure the edge."""
    events = [msgspec.json.encode(event) for event in samples_of(data)]
    with kept_or_temporary(None) as folder:
        asyncio.run(_run(prepare(folder, cache), events, seconds))


async def _run(stack: Stack, events: Sequence[bytes], seconds: float) -> None:
    children = [child for child in stack.children() if child.name in CHILDREN]
    async with supervised(children) as supervisor:
        settings = load(MigrateSettings, stack.environ)
        project = await create_project(settings, "bench", rate_limit=10_000_000)
        pid = supervisor.statuses["edge"].pid
        assert pid is not None
        await asyncio.to_thread(
            _measure, Server(pid, stack.edge.ingest_port), settings, project.token, events, seconds
        )


class Server(Struct, frozen=True):
    """A process and its port."""

    pid: int
    port: int


def _measure(
    edge: Server, settings: MigrateSettings, token: str, events: Sequence[bytes], seconds: float
) -> None:
    bodies = floors.batches(events)
    singles = [request("/v1/events", event, headers(token)) for event in events]
    batches = [request("/v1/events:batch", body, headers(token, zipped=True)) for body in bodies]
    inflate, decode = floors.inflate_cost(bodies), floors.decode_cost(bodies)
    produce = floors.produce_cost(settings.kafka_bootstrap, name_of(settings, Topic.EVENTS), events)
    floor = inflate + decode + produce
    print(
        f"{len(events)} events of {sum(map(len, events)) // len(events)} bytes; CPU µs an event, each alone:"
    )
    print(
        f"  inflate {inflate:.1f}, decode and validate {decode:.1f}, compress and produce {produce:.1f}; "
        f"together {floor:.1f}"
    )
    fleet, fresh = LoadPlan(seconds, FLEET), LoadPlan(seconds, FLEET, fresh=True)
    with _trivial() as trivial:
        _show("trivial handler, single", trivial, singles, fleet)
        _show("trivial handler, single, new connections", trivial, singles, fresh)
    plan = LoadPlan(seconds, CONNECTIONS)
    _show("warm-up", edge, batches, LoadPlan(seconds / 4, CONNECTIONS), floors.BATCH)
    full = _show("edge, gzip batches of 100", edge, batches, plan, floors.BATCH, floor)
    steady = LoadPlan(seconds, CONNECTIONS, rate=0.7 * full.rate)
    _show("edge, batches at 70 %", edge, batches, steady, floors.BATCH, floor)
    for title, plan in (("edge, single", fleet), ("edge, single, new connections", fresh)):
        each = _show(title, edge, singles, plan)
        print(f"    {each.cost / full.cost:.2f} x an event of a batch")


class EdgeFigures(Struct, frozen=True):
    """A run's requests a second, and CPU µs an event."""

    rate: float
    cost: float


def _show(
    title: str,
    server: Server,
    requests: Sequence[bytes],
    plan: LoadPlan,
    events_each: int = 1,
    floor: float | None = None,
) -> EdgeFigures:
    """Do one run and print its line."""
    before = cpu_seconds(server.pid)
    with elsewhere() as pool:
        result = pool.submit(run_load, server.port, requests, plan).result()
    spent = cpu_seconds(server.pid) - before
    events = result.answers * events_each
    cost = spent / events * 1e6
    of_floor = f", {cost / floor:.2f} x floor" if floor else ""
    refused = {status: count for status, count in result.statuses.items() if status != 202}
    print(
        f"  {title}: {events / result.seconds:,.0f} events/s, "
        f"{result.answers / result.seconds:,.0f} requests/s, "
        f"{cost:.1f} µs CPU an event ({events / spent:,.0f} events/s a core){of_floor}; "
        f"p50 {quantile(result.delays, 0.5) * 1000:.1f} ms, p99 {quantile(result.delays, 0.99) * 1000:.1f} ms"
        + (f"; refused {refused}" if refused else "")
    )
    return EdgeFigures(result.answers / result.seconds, cost)


@contextmanager
def _trivial() -> Iterator[Server]:
    port = free_port()
    process = SPAWN.Process(target=floors.serve_trivially, args=(port,))
    process.start()
    try:
        _await_answer(f"http://127.0.0.1:{port}/")
        assert process.pid is not None
        yield Server(process.pid, port)
    finally:
        process.kill()
        process.join()


def _await_answer(url: str, timeout: float = 30.0) -> None:
    end = time.monotonic() + timeout
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310  # our own address
                return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


if __name__ == "__main__":
    main()
