"""What an event and a question cost on one, two and three ClickHouse servers: `python -m bench.shards [--events N]`.

CPU of writer and servers for a backlog; of questions the median latency, and the CPU on each server. For questions the floor is one server
with a third of the events: what each of three servers reads. All servers are on this machine and share its cores, so the latency over
three is that of the sum of their work, where each on a machine of its own would work beside the others.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import click
import psutil
from aiokafka import AIOKafkaProducer
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from local.kafka.server import LocalKafka
from schemas.chunks import (
    FORMAT_HEADER,
    GROUPED_FORMAT,
    ChunkEvent,
    GroupedChunk,
    Grouping,
    encode_chunk,
    encode_grouped,
)
from schemas.ids import event_partition, issue_id
from schemas.settings import WriterSettings
from storage.client import scalar
from storage.migrations.migrate import migrate
from storage.migrations.whole import make_whole
from storage.reader.execute import Executor, Limits
from storage.reader.issue_list import ListIssues
from storage.reader.reader import Reader
from storage.reader.tag_calls import CountProjectTags
from storage.shards import WHOLE, open_servers
from tests.eventually import eventually
from tests.integration.storage.grouped import PROJECTS, chunk_event, drained, ended
from tests.integration.storage.shards.spread_stage import PARTITIONS, SpreadStage
from tests.shard_servers import CLUSTER, ShardServer, shard_servers

DATABASE = "test_shards"
"""Of a name that the local user may create."""
CHUNK = 100
ISSUES = 400
ROUNDS = 40
_DESCRIBE = """
    SELECT project_id, fingerprint, count(), min(ts), max(ts) FROM events
    GROUP BY project_id, fingerprint"""


class Cost(Struct, frozen=True):
    """Of an event in µs of CPU, and of questions in ms."""

    writer: float
    servers: float
    questions: dict[str, float]
    question: float
    """Of a question on a server, in ms of CPU."""


@click.command()
@click.option("--events", default=120_000, show_default=True)
@click.option("--cache", type=click.Path(path_type=Path), default=Path(".cache"), help="Kafka's jars.")
def main(events: int, cache: Path) -> None:
    """Measure one, two and three servers, and one with a third of the events."""
    table = Table(title=f"{events:,} events")
    for name in ("servers", "events", "writer µs", "ClickHouse µs", "together"):
        table.add_column(name, justify="right")
    first: Cost | None = None
    for count, size in ((1, events // 3), (1, events), (2, events), (3, events)):
        cost = asyncio.run(_measure(count, size, cache))
        if first is None:
            for name in (*(f"{name} ms" for name in cost.questions), "CPU of a question on a server ms"):
                table.add_column(name, justify="right")
            first = cost
        figures = [cost.writer, cost.servers, cost.writer + cost.servers]
        times = [(ms, first.questions[name]) for name, ms in cost.questions.items()]
        times.append((cost.question, first.question))
        shown = [f"{ms:.1f} ({ms / floor:.2f} ×)" for ms, floor in times]
        table.add_row(str(count), f"{size:,}", *(f"{figure:.1f}" for figure in figures), *shown)
    Console(width=160).print(table)


async def _measure(count: int, events: int, cache: Path) -> Cost:
    with (
        tempfile.TemporaryDirectory(prefix="shards-") as folder,
        shard_servers(Path(folder), count) as servers,
    ):
        kafka = LocalKafka(Path(folder) / "kafka", cache)
        await asyncio.to_thread(kafka.start)
        try:
            urls = [server.url(database=DATABASE) for server in servers]
            for number, url in enumerate(urls):
                migrate(url, shard=f"{number + 1}/{count}")
            for url in urls if count > 1 else ():
                make_whole(url, url + WHOLE, CLUSTER)
            stage = await SpreadStage(kafka.bootstrap, urls, "svc.", Path(folder)).prepare()
            await _send(stage, events)
            writer, stored = await _write(stage, servers)
            _describe(stage.settings)
            async with _reader(urls) as reader:
                before = sum(_cpu(server.pid) for server in servers)
                questions = await _ask(reader)
                question = sum(_cpu(server.pid) for server in servers) - before
        finally:
            await asyncio.to_thread(kafka.stop)
    of_one = question / len(questions) / ROUNDS / count * 1e3
    return Cost(writer / events * 1e6, stored / events * 1e6, questions, of_one)


async def _send(stage: SpreadStage, events: int) -> None:
    """What the grouper would have sent."""
    groupings = [
        Grouping(number << 40, "v1", "frames", (f"Error{number}",)) for number in range(1, ISSUES + 1)
    ]
    waiting: list[list[tuple[ChunkEvent, int]]] = [[] for _ in range(PARTITIONS)]
    offsets = [0] * PARTITIONS
    producer = AIOKafkaProducer(bootstrap_servers=stage.settings.kafka_bootstrap, acks="all")
    await producer.start()
    try:
        for number in range(events + PARTITIONS * CHUNK):
            event = chunk_event(number, spread_days=10)
            partition = event_partition(event.project, event.id, PARTITIONS)
            if number < events:
                waiting[partition].append((event, number * number % ISSUES))
            else:
                partition = number % PARTITIONS
            part = waiting[partition]
            if len(part) < CHUNK and (number < events or not part):
                continue
            chunk = GroupedChunk(
                partition=partition,
                offset=offsets[partition],
                kept=list(range(len(part))),
                grouping_of=[grouping for _, grouping in part],
                groupings=groupings,
                chunk=encode_chunk([event for event, _ in part]),
                retention=dict.fromkeys(PROJECTS, (90, 90)),
            )
            headers = [(FORMAT_HEADER, GROUPED_FORMAT)]
            await producer.send(stage.topic, encode_grouped(chunk), partition=partition, headers=headers)
            offsets[partition] += 1
            waiting[partition] = []
        await producer.flush()
    finally:
        await producer.stop()


async def _write(stage: SpreadStage, servers: Sequence[ShardServer]) -> tuple[float, float]:
    """CPU seconds of the writer and of the servers until everything is stored."""
    before = sum(_cpu(server.pid) for server in servers)
    writer = stage.writer()
    with ended(writer):
        # Its start isn't part of an event's cost.
        await eventually(lambda: writer.get("readyz")[0] == 200, 60)
        began = _cpu(writer.process.pid)

        async def done() -> bool:
            return await drained(stage)

        await eventually(done, 600)
        return _cpu(writer.process.pid) - began, sum(_cpu(server.pid) for server in servers) - before


def _cpu(pid: int | None) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def _describe(settings: WriterSettings) -> None:
    """The issues, on each server, as processors and writers would have them."""
    with open_servers(settings) as servers:
        columns = ["project_id", "issue_id", "fingerprints", "error_type", "message", "events", "first_seen", "last_seen", "version"]  # fmt: skip
        rows = [
            [project, issue_id(project, fingerprint), [fingerprint], "TypeError", "m", events, first, last, 1]
            for project, fingerprint, events, first, last in servers[0].whole.query(_DESCRIBE).result_rows
        ]  # fmt: skip
        for server in servers:
            server.own.insert("issues", rows, column_names=columns)
            assert scalar(server.own, "SELECT count() FROM issues") == len(rows)


@asynccontextmanager
async def _reader(urls: Sequence[str]) -> AsyncIterator[Reader]:
    reader = Reader(Executor([url + (WHOLE if len(urls) > 1 else "") for url in urls], Limits()))
    try:
        yield reader
    finally:
        await reader.close()


async def _ask(reader: Reader) -> dict[str, float]:
    """The median in ms of each question."""
    [project, *_] = PROJECTS
    questions: dict[str, Callable[[], Awaitable[object]]] = {
        "issues": lambda: reader.read(ListIssues(project)),
        "issues by a tag": lambda: reader.read(ListIssues(project, "n:4")),
        "facets": lambda: reader.read(CountProjectTags(project, "n:4")),
    }
    return {name: await _median(question) for name, question in questions.items()}


async def _median(question: Callable[[], Awaitable[object]]) -> float:
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        await question()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times[ROUNDS // 4 :])


if __name__ == "__main__":
    main()
