"""`python -m bench.processors`: the cost of grouping and folding per event, compared with the bare libraries.

`load` runs events through one worker: deduplicate, fingerprint, fold, forward. `recovery` times the restore of millions of
ids and of uncompacted states of issues, `memory` measures the size of ids.
"""

import asyncio
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
import msgspec
import psutil
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from rich.console import Console
from rich.table import Table

from bench.floors.processors import PARTITIONS, cpu_seconds
from bench.table_logs import append, issue_states, logged_ids, read_records
from cli.demo.sample_events import FILE
from cli.send.batches import read_lines
from local.kafka.server import LocalKafka
from local.ports import free_port
from processors.grouper.id_index import IdIndex, id_keys
from schemas.chunks import ChunkEvent, encode_chunk
from schemas.ids import event_partition, uuid7
from schemas.times import iso
from schemas.topics import topic_specs

CHUNK: Final = 100
PROJECTS: Final = 10
HOT_SHARE: Final = 0.9
SHAPES: Final = ("real", "varied", "hot", "flood")
PREFIX: Final = "bench."


class Shape:
    """Generates events: `real` from samples, `varied` with distinct messages, `hot` mostly a single one, `flood` with distinct types."""

    def __init__(self, name: str, samples: list[dict[str, Any]], repeats: float) -> None:
        self._name = name
        self._samples = samples
        self._repeats = repeats
        self._random = random.Random(7)
        self._sequence = 0

    def _one(self, now: int) -> ChunkEvent:
        self._sequence += 1
        hot = self._name == "hot" and self._random.random() < HOT_SHARE
        event = dict(self._samples[0] if hot else self._random.choice(self._samples))
        identity = uuid7(now - self._random.randrange(600_000))
        event["id"], event["timestamp"] = str(identity), iso(now - self._random.randrange(600_000))
        if self._name == "flood":
            event["error"] = dict(event["error"], type=f"Kind{self._sequence}Error")
        if self._name == "varied":
            error = event["error"]
            event["error"] = dict(error, message=f"{error.get('message') or ''} {self._sequence}")
        project = 1 if hot else 1 + self._random.randrange(PROJECTS)
        return ChunkEvent(project, identity.bytes, now, "bench/1", msgspec.json.encode(event))

    def chunks(self, events: int) -> Iterator[tuple[int, bytes]]:
        """Partition and value of records; a share `repeats` of their events are repeated."""
        waiting: list[list[ChunkEvent]] = [[] for _ in range(PARTITIONS)]
        known: list[list[ChunkEvent]] = [[] for _ in range(PARTITIONS)]
        now = time.time_ns() // 1_000_000
        for _ in range(events):
            event = self._one(now)
            partition = event_partition(event.project, event.id, PARTITIONS)
            known[partition].append(event)
            if self._random.random() < self._repeats:
                event = self._random.choice(known[partition])
            waiting[partition].append(event)
            if len(waiting[partition]) == CHUNK:
                yield partition, encode_chunk(waiting[partition])
                waiting[partition].clear()


async def prepare(bootstrap: str) -> None:
    """Create the topics."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    specs = topic_specs(PREFIX, {}, PARTITIONS, 1)
    await admin.create_topics([NewTopic(s.name, s.partitions, 1, topic_configs=s.configs) for s in specs])
    await admin.close()


class Worker:
    """One `svc processors` on a broker."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.port = free_port()
        self.log = folder / "worker.log"
        environ = {
            "SVC_KAFKA_BOOTSTRAP": bootstrap,
            "SVC_TOPIC_PREFIX": PREFIX,
            "SVC_DATA_DIR": str(folder),
            "SVC_PROCESSORS_HEALTH_PORT": str(self.port),
        }
        with self.log.open("wb") as out:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "cli", "processors"], env=environ, stderr=out
            )
        self.process = psutil.Process(self._child.pid)

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as answer:
                text = answer.read().decode()
        except OSError:
            return 0.0
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))

    def until(self, name: str, value: float, seconds: float = 600, pause: float = 0.5) -> None:
        """Wait until a metric has reached a value. Each request costs the worker some milliseconds of CPU."""
        end = time.monotonic() + seconds
        while self.metric(name) < value:
            if self._child.poll() is not None or time.monotonic() > end:
                raise click.ClickException(f"{name} did not reach {value}:\n{self.log.read_text()[-2000:]}")
            time.sleep(pause)

    def stop(self) -> None:
        """Stop it."""
        self._child.terminate()
        self._child.wait(30)


def floor(form: str, bootstrap: str, records: int, folder: Path) -> tuple[float, float]:
    """Seconds and CPU seconds for reading all records with a bare library."""
    command = [
        sys.executable,
        "-m",
        "bench.floors.processors",
        form,
        bootstrap,
        f"{PREFIX}events",
        str(records),
    ]
    done = subprocess.run([*command, str(folder)], capture_output=True, text=True, check=True)
    line = next(line for line in done.stdout.splitlines() if line.startswith("FLOOR"))
    _, seconds, cpu = line.split()
    return float(seconds), float(cpu)


async def _lag(bootstrap: str) -> int:
    """Records that the worker has written for the aggregator."""
    consumer: AIOKafkaConsumer = AIOKafkaConsumer(bootstrap_servers=bootstrap)
    await consumer.start()
    ends = await consumer.end_offsets([TopicPartition(f"{PREFIX}issue-deltas", p) for p in range(PARTITIONS)])
    await consumer.stop()
    return sum(ends.values())


@click.group()
def processors() -> None:
    """Measure the processors."""


@processors.command("load")
@click.option("--events", default=100_000, show_default=True)
@click.option("--repeats", default=0.04, show_default=True, help="Share of repeated ids.")
@click.option("--shape", "shapes", type=click.Choice(SHAPES), multiple=True, default=SHAPES)
@click.option("--data", type=click.Path(path_type=Path, exists=True), default=FILE, help="JSONL of events.")
@click.option("--cache", type=click.Path(path_type=Path), default=Path(".cache"), help="Kafka's jars.")
def load_(events: int, repeats: float, shapes: tuple[str, ...], data: Path, cache: Path) -> None:
    """Process events with one worker, compared with a bare consumer and a bare agent."""
    samples = [msgspec.json.decode(line) for line in read_lines(data)]
    table = Table("what", "events/s", "CPU µs/event", box=None)
    for shape in shapes:
        with tempfile.TemporaryDirectory(prefix="bench-") as name:
            folder = Path(name)
            kafka = LocalKafka(folder / "kafka", cache).start()
            try:
                shape_events = Shape(shape, samples, repeats)
                for row in _measure(shape, shape_events, events, kafka.bootstrap, folder):
                    table.add_row(*row)
            finally:
                kafka.stop()
    Console(highlight=False).print(table)


def _measure(
    shape: str, shape_events: Shape, events: int, bootstrap: str, folder: Path
) -> Iterator[tuple[str, str, str]]:
    asyncio.run(prepare(bootstrap))
    records = asyncio.run(
        append(bootstrap, f"{PREFIX}events", ((p, None, v) for p, v in shape_events.chunks(events)))
    )
    read = records * CHUNK

    def row(what: str, seconds: float, cpu: float) -> tuple[str, str, str]:
        return f"{shape}: {what}", f"{read / seconds:,.0f}", f"{cpu / read * 1e6:.1f}"

    for form, title in (("consumer", "bare aiokafka consumer"), ("agent", "bare Faust agent")):
        yield row(title, *floor(form, bootstrap, records, folder))
    worker = Worker(bootstrap, folder)
    worker.until("svc_processors_events_total", 1)
    started, before, cpu = (
        time.monotonic(),
        worker.metric("svc_processors_events_total"),
        cpu_seconds(worker.process),
    )
    worker.until("svc_processors_events_total", read)
    grouped = time.monotonic() - started
    worker.until('svc_processors_records_total{stage="aggregator"}', asyncio.run(_lag(bootstrap)))
    share = 1 - before / read
    yield (*row("grouped and forwarded", grouped / share, 0.0)[:2], "")
    used = cpu_seconds(worker.process) - cpu
    yield row("grouper + aggregator, drained", (time.monotonic() - started) / share, used / share)
    issues = worker.metric("svc_processors_table_entries{")
    memory = worker.process.memory_info().rss / 1e6
    states = worker.metric("svc_processors_issues_written_total") / worker.metric(
        "svc_processors_events_total"
    )
    yield (
        f"{shape}: table entries {issues:,.0f}, {states:.2f} states written an event, memory {memory:.0f} MB",
        "",
        "",
    )
    worker.stop()


@processors.command()
@click.option("--ids", default=10_000_000, show_default=True)
@click.option("--block", default=10_000, show_default=True, help="Ids per entry.")
@click.option("--chunk", default=CHUNK, show_default=True, help="Ids per record of `events`.")
@click.option("--hour", is_flag=True, help="All ids came within an hour, instead of six days.")
@click.option("--issues", default=0, show_default=True)
@click.option(
    "--states", default=0, show_default=True, help="Records of these issues that are not compacted."
)
@click.option("--cache", type=click.Path(path_type=Path), default=Path(".cache"), help="Kafka's jars.")
def recovery(ids: int, block: int, chunk: int, issues: int, states: int, cache: Path, *, hour: bool) -> None:
    """Time a worker's restore of tables of ids and issues."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        kafka = LocalKafka(folder / "kafka", cache).start()
        try:
            asyncio.run(prepare(kafka.bootstrap))
            asyncio.run(
                append(kafka.bootstrap, f"{PREFIX}seen", logged_ids(ids, PARTITIONS, block, chunk, hour=hour))
            )
            asyncio.run(append(kafka.bootstrap, f"{PREFIX}events", read_records(ids, PARTITIONS, chunk)))
            asyncio.run(append(kafka.bootstrap, f"{PREFIX}issues", issue_states(issues, states, PARTITIONS)))
            started = time.monotonic()
            worker = Worker(kafka.bootstrap, folder)
            worker.until("svc_processors_recovery_seconds", 0.001, pause=0.1)
            waited = time.monotonic() - started
            known, seconds = (
                worker.metric("svc_processors_seen_ids{"),
                worker.metric("svc_processors_recovery_seconds"),
            )
            memory, cpu = worker.process.memory_info().rss / 1e6, cpu_seconds(worker.process)
            read = worker.metric("svc_processors_recovery_records")
            print(
                f"{known:,.0f} ids, {read:,.0f} records: recovery {seconds:.1f} s, {waited:.1f} s and {cpu:.1f} s of CPU from"
                f" start, memory {memory:.0f} MB"
            )
            worker.stop()
        finally:
            kafka.stop()


def _random_ids(count: int, now: int, rng: random.Random) -> list[bytes]:
    week = 7 * 86_400_000
    return [uuid7(now - rng.randrange(week)).bytes for _ in range(count)]


@processors.command()
@click.option("--kills", default=10, show_default=True)
@click.option("--events", default=200_000, show_default=True, help="The backlog.")
@click.option("--cache", type=click.Path(path_type=Path), default=Path(".cache"), help="Kafka's jars.")
def takeover(kills: int, events: int, cache: Path) -> None:
    """Kill and restart a worker within its backlog; measure the time until it processes events again."""
    samples = [msgspec.json.decode(line) for line in read_lines(FILE)]
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        kafka = LocalKafka(folder / "kafka", cache).start()
        try:
            asyncio.run(prepare(kafka.bootstrap))
            shape_events = Shape("real", samples, 0.04).chunks(events)
            asyncio.run(append(kafka.bootstrap, f"{PREFIX}events", ((p, None, v) for p, v in shape_events)))
            worker = Worker(kafka.bootstrap, folder)
            taken = []
            for _ in range(kills):
                worker.until("svc_processors_events_total", 1)
                worker.process.kill()
                killed = time.monotonic()
                worker = Worker(kafka.bootstrap, folder)
                worker.until("svc_processors_events_total", 1, pause=0.05)
                taken.append(time.monotonic() - killed)
            worker.stop()
        finally:
            kafka.stop()
    ordered = sorted(taken)
    print(
        f"{kills} kills: flowing again after {ordered[0]:.1f} to {ordered[-1]:.1f} s, median {ordered[kills // 2]:.1f} s"
    )


@processors.command()
@click.option("--ids", default=2_000_000, show_default=True)
def memory(ids: int) -> None:
    """Measure the size and the lookup cost of the id index."""
    rng, now, index = random.Random(1), time.time_ns() // 1_000_000, IdIndex()
    step = 10_000
    blocks = [id_keys([1] * step, _random_ids(step, now, rng)) for _ in range(ids // step)]
    before, cpu = psutil.Process().memory_info().rss, time.process_time()
    for block in blocks:
        index.new(now // 86_400_000, block)
    added = time.process_time() - cpu
    cpu = time.process_time()
    for block in blocks[:: max(1, len(blocks) // 20)]:
        index.new(now // 86_400_000, block)
    lookup_seconds = time.process_time() - cpu
    grown = psutil.Process().memory_info().rss - before
    print(
        f"{len(index):,} ids: index {index.size / len(index):.1f} bytes an id by its own count, {grown / len(index):.1f} of the"
        f" process; adding {added / ids * 1e6:.2f} µs an id, asking {lookup_seconds / min(ids, 20 * step) * 1e6:.2f} µs"
    )


if __name__ == "__main__":
    processors()
