"""`python -m bench.processors_stages --data DATA`: CPU per event of grouper and aggregator alone, with topics in memory.

Without a broker and its waits, two versions of the code can be compared on a busy machine: run them alternately.
"""

import asyncio
import gc
import os
import sys
import time
from collections.abc import Awaitable, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import click
import msgspec
from prometheus_client import CollectorRegistry

from bench.floors.processors import PARTITIONS
from bench.processors import CHUNK, SHAPES, Shape
from bench.table_logs import HEADERS
from broker.batch_producer import BatchProducer, WrittenBatch
from broker.message import Message
from cli.demo.sample_events import FILE
from cli.send.batches import read_lines
from processors.aggregator.stage import AggregatorStage
from processors.batch_table import BatchTable
from processors.faust_app.worker import GC_THRESHOLDS
from processors.grouper.fingerprinter import Fingerprinter
from processors.grouper.grouped_tail import GroupedTail
from processors.grouper.replay import ReplayBoundary
from processors.grouper.stage import GrouperStage, IdsByPartition
from processors.metrics import ProcessorsMetrics
from processors.positions import SourceRecord
from schemas.projects import ProjectRegistry
from schemas.topics import Topic

NAMES = {topic: topic.title for topic in Topic}


class Memory:
    """A producer that stores records for `deltas` and drops all others."""

    def __init__(self) -> None:
        self.deltas: dict[int, list[Message]] = {p: [] for p in range(PARTITIONS)}

    async def begin(
        self, topic: str, partition: int, messages: Iterable[Message]
    ) -> list[Awaitable[WrittenBatch]]:
        """Append records."""
        messages = list(messages)
        if topic == NAMES[Topic.ISSUE_DELTAS]:
            self.deltas[partition] += messages
        return []


class Shares:
    """A table without a changelog."""

    def __init__(self) -> None:
        self._parts: dict[int, dict[bytes, bytes]] = {}

    def part(self, partition: int) -> Mapping[bytes, bytes]:
        """The content of a partition."""
        return self._parts.setdefault(partition, {})

    async def check_owner(self, partition: int) -> None:
        """Nobody else writes."""

    async def write(self, partition: int, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Change keys of one partition."""
        part = self._parts.setdefault(partition, {})
        part.update({key: value for key, value in changes if value is not None})


class Nothing:
    """An empty topic `grouped`, and a ClickHouse that stores nothing."""

    async def among(self, ids: IdsByPartition) -> set[tuple[int, bytes]]:  # noqa: ARG002
        """No id is stored."""
        return set()

    async def read(self, *_: Any) -> ReplayBoundary | None:
        """There are no records."""
        return None


async def measure(chunks: list[tuple[int, bytes]], handle_batch: int) -> tuple[float, float]:
    """CPU seconds of the grouper and of the aggregator, which folds once per batch."""
    memory, seen, metrics = Memory(), Shares(), ProcessorsMetrics(CollectorRegistry())
    producer, table = cast(BatchProducer, memory), cast(BatchTable, seen)
    grouper = GrouperStage(
        NAMES,
        PARTITIONS,
        table,
        producer,
        Fingerprinter(ProjectRegistry()),
        cast(GroupedTail, Nothing()),
        metrics,
        days=7,
        grouped_events=False,
        stored_ids=Nothing(),
    )
    aggregator = AggregatorStage(NAMES, PARTITIONS, cast(BatchTable, Shares()), table, producer, metrics)
    for partition in range(PARTITIONS):
        await grouper.restore(partition, 0, len(chunks))
        aggregator.restore(partition, 0)
    offsets, folded = [0] * PARTITIONS, [0] * PARTITIONS
    grouping = folding = 0.0
    now = time.time_ns() // 1_000_000
    for start in range(0, len(chunks), handle_batch):
        records: dict[int, list[SourceRecord]] = {}
        for partition, value in chunks[start : start + handle_batch]:
            source = SourceRecord(offsets[partition], now, None, value, list(HEADERS))
            records.setdefault(partition, []).append(source)
            offsets[partition] += 1
        began = time.process_time()
        await grouper.handle_batch(records)
        grouping += time.process_time() - began
        deltas = {p: _due(log, folded[p]) for p, log in memory.deltas.items()}
        folded = [len(memory.deltas[p]) for p in range(PARTITIONS)]
        began = time.process_time()
        await aggregator.handle_batch(deltas)
        folding += time.process_time() - began
    return grouping, folding


def _due(log: list[Message], start: int) -> list[SourceRecord]:
    return [SourceRecord(n, 0, m.key, m.value or b"", []) for n, m in enumerate(log[start:], start)]


@click.command()
@click.option("--events", default=60_000, show_default=True)
@click.option("--repeats", default=0.04, show_default=True)
@click.option(
    "--take", "handle_batch", default=120, show_default=True, help="Chunks of 100 events per batch."
)
@click.option("--shape", "shapes", type=click.Choice(SHAPES), multiple=True, default=SHAPES)
@click.option("--data", type=click.Path(path_type=Path, exists=True), default=FILE, help="JSONL of events.")
def stages(events: int, repeats: float, handle_batch: int, shapes: tuple[str, ...], data: Path) -> None:
    """CPU of each stage an event."""
    samples: list[dict[str, Any]] = [msgspec.json.decode(line) for line in read_lines(data)]
    for shape in shapes:
        chunks = list(Shape(shape, samples, repeats).chunks(events))
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        grouping, folding = asyncio.run(measure(chunks, handle_batch))
        micro = 1e6 / (len(chunks) * CHUNK)
        print(
            f"{shape}: grouper {grouping * micro:.1f} + aggregator {folding * micro:.1f}"
            f" = {(grouping + folding) * micro:.1f} µs an event"
        )
    sys.stdout.flush()
    # At the interpreter's shutdown the sketches' library would list all its live objects.
    os._exit(0)


if __name__ == "__main__":
    stages()
