"""The edge under load, with its floors from the same run: `python -m bench.edge [--data FILE] [--seconds N]`.

Starts a broker unless `--bootstrap` names one, one edge process, and the load in a separate process. Prints events per
second and CPU microseconds per event for single events and for gzip batches, and the delays at 70 % of the highest rate.
"""

import asyncio
import gzip
import multiprocessing
import os
import secrets
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from msgspec import Struct

from bench.edge_load import LoadPlan, LoadResult, request, run_load
from bench.floors import edge as floors
from local.kafka.server import LocalKafka
from local.ports import free_port
from schemas.ids import new_token
from schemas.projects import Project, Token, encode_project
from schemas.topics import topic_specs

ROOT = Path(__file__).parent.parent
SAMPLES = ROOT / "cli" / "demo" / "events.jsonl.gz"
PROJECT = 1
CONNECTIONS = 32
FLEET = 200
"""Connections of a fleet that sends event by event."""


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), default=SAMPLES, show_default=True)
@click.option("--seconds", type=float, default=10.0, show_default=True, help="length of each run")
@click.option("--bootstrap", help="a running Kafka, on which topics with a random prefix are created")
def main(data: Path, seconds: float, bootstrap: str | None) -> None:
    """Measure the edge."""
    events = gzip.decompress(data.read_bytes()).splitlines()
    with tempfile.TemporaryDirectory() as folder, _kafka(bootstrap, Path(folder)) as address:
        _measure(address, Path(folder), events, seconds)


def _measure(bootstrap: str, folder: Path, events: Sequence[bytes], seconds: float) -> None:
    prefix, token = f"bench{secrets.token_hex(4)}.", new_token()
    asyncio.run(_prepare(bootstrap, prefix, token))
    bodies = floors.batches(events)
    headers = {"Authorization": f"Bearer {token}", "Svc-Sdk": "bench/1.0", "Content-Type": "application/json"}
    singles = [request("/v1/events", event, headers) for event in events]
    batches = [request("/v1/events:batch", body, headers | {"Content-Encoding": "gzip"}) for body in bodies]

    inflate, decode = floors.inflate_cost(bodies), floors.decode_cost(bodies)
    compress, produce = (
        floors.compress_cost(events),
        floors.produce_cost(bootstrap, prefix + "events", events),
    )
    floor = inflate + decode + produce
    print(
        f"{len(events)} events of {sum(map(len, events)) // len(events)} bytes; CPU µs an event, each alone:"
    )
    print(f"  inflate {inflate:.1f}, decode and validate {decode:.1f}, compress and produce {produce:.1f}")
    print(f"  (compress {compress:.1f}); together {floor:.1f}")
    fleet, fresh = LoadPlan(seconds, FLEET), LoadPlan(seconds, FLEET, fresh=True)
    with _trivial() as (pid, port):
        _show("trivial handler, single", port, pid, singles, fleet)
        _show("trivial handler, single, new connections", port, pid, singles, fresh)
    with _edge(bootstrap, prefix, folder) as (pid, port):
        _show("warm-up", port, pid, batches, LoadPlan(seconds / 4, CONNECTIONS), floors.BATCH)
        full = _show(
            "edge, gzip batches of 100",
            port,
            pid,
            batches,
            LoadPlan(seconds, CONNECTIONS),
            floors.BATCH,
            floor,
        )
        steady = LoadPlan(seconds, CONNECTIONS, rate=0.7 * full.rate)
        _show("edge, batches at 70 %", port, pid, batches, steady, floors.BATCH, floor)
        for title, plan in (("edge, single", fleet), ("edge, single, new connections", fresh)):
            each = _show(title, port, pid, singles, plan)
            print(f"    {each.cost / full.cost:.2f} x an event of a batch")


class Shown(Struct, frozen=True):
    """A run's requests a second, and CPU µs an event."""

    rate: float
    cost: float


def _show(
    title: str,
    port: int,
    pid: int,
    requests: Sequence[bytes],
    plan: LoadPlan,
    events_each: int = 1,
    floor: float | None = None,
) -> Shown:
    """Do one run and print its line."""
    before = _cpu_seconds(pid)
    result = _load_elsewhere(port, requests, plan)
    spent = _cpu_seconds(pid) - before
    events = result.answers * events_each
    cost = spent / events * 1e6
    beside = f", {cost / floor:.2f} x floor" if floor else ""
    refused = {status: count for status, count in result.statuses.items() if status != 202}
    print(
        f"  {title}: {events / result.seconds:,.0f} events/s, {result.answers / result.seconds:,.0f} requests/s, "
        f"{cost:.1f} µs CPU an event ({events / spent:,.0f} events/s a core){beside}; "
        f"p50 {result.delay(0.5) * 1000:.1f} ms, p99 {result.delay(0.99) * 1000:.1f} ms"
        + (f"; refused {refused}" if refused else "")
    )
    return Shown(result.answers / result.seconds, cost)


def _load_elsewhere(port: int, requests: Sequence[bytes], plan: LoadPlan) -> LoadResult:
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(run_load, (port, requests, plan))


@contextmanager
def _kafka(bootstrap: str | None, folder: Path) -> Iterator[str]:
    if bootstrap:
        yield bootstrap
        return
    kafka = LocalKafka(folder / "kafka", ROOT / ".cache").start()
    try:
        yield kafka.bootstrap
    finally:
        kafka.stop()


@contextmanager
def _edge(bootstrap: str, prefix: str, folder: Path) -> Iterator[tuple[int, int]]:
    port = free_port()
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SVC_")} | {
        "SVC_KAFKA_BOOTSTRAP": bootstrap,
        "SVC_TOPIC_PREFIX": prefix,
        "SVC_INGEST_PORT": str(port),
        "SVC_DATA_DIR": str(folder / "edge"),
    }
    with subprocess.Popen([sys.executable, "-m", "cli.edge"], env=environ, cwd=ROOT) as process:
        try:
            _await_answer(f"http://127.0.0.1:{port}/readyz")
            yield process.pid, port
        finally:
            process.terminate()


@contextmanager
def _trivial() -> Iterator[tuple[int, int]]:
    port = free_port()
    process = multiprocessing.get_context("fork").Process(target=floors.serve_trivially, args=(port,))
    process.start()
    try:
        _await_answer(f"http://127.0.0.1:{port}/")
        assert process.pid is not None
        yield process.pid, port
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


async def _prepare(bootstrap: str, prefix: str, token: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    specs = topic_specs(prefix, {}, 4, 1)
    await admin.create_topics([NewTopic(s.name, s.partitions, 1, topic_configs=s.configs) for s in specs])
    await admin.close()
    moment = "2026-01-01T00:00:00.000Z"
    project = Project(
        id=str(PROJECT),
        name="bench",
        created_at=moment,
        tokens=(Token(token, moment),),
        rate_limit_per_minute=10_000_000,
    )
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
    await producer.start()
    await producer.send_and_wait(prefix + "projects", encode_project(project), key=project.id.encode())
    await producer.stop()


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
