"""The latency of issue changes on an idle system: from the command to its effect in the topic `issues`.

    python -m bench.issue_changes [--changes 100]

Starts a broker and one worker in a temporary folder. `connected` is a command over open connections, `call` a call of
`control.issue_commands`, which opens its own connections, as in the dashboard.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from msgspec import Raw

from broker.topics import ensure_topics
from control.issue_commands import Commands, is_done
from local.kafka.server import LocalKafka
from local.ports import free_port
from schemas.environment import load
from schemas.ids import hex64, issue_id, uuid7
from schemas.increments import (
    Description,
    Increment,
    Row,
    SourceIncrements,
    encode_description,
    encode_source,
    join,
)
from schemas.issues import Command, DeltaRecord, decode_issue, encode_json
from schemas.settings import KafkaSettings
from schemas.times import iso

CACHE = Path(__file__).parent.parent / ".cache"
ISSUE = issue_id(1, 1)
MS = 1_790_000_000_000


def increment() -> Increment:
    """One event."""
    description = Raw(encode_description(Description("E", "m", "f", "v1", "stack", ("p",))))
    rows = [Row("a@1+1", "prod", "ios", MS // 3_600_000, 1)]
    return Increment(ISSUE, 1, 1, 1, MS, MS, MS, bytes(16), "a@1+1", "a@1+1", rows, [], description)


def command() -> Command:
    """A change without effect except in the record."""
    return Command(str(uuid7()), hex64(ISSUE), "1", "comment", "bench", iso(MS), {"text": "x"})


async def connected(settings: KafkaSettings, changes: int) -> list[float]:
    """Seconds of each change over open connections."""
    consumer: AIOKafkaConsumer = AIOKafkaConsumer(
        bootstrap_servers=settings.kafka_bootstrap, enable_auto_commit=False
    )
    producer = AIOKafkaProducer(bootstrap_servers=settings.kafka_bootstrap, acks="all")
    await consumer.start()
    await producer.start()
    tp = TopicPartition(f"{settings.topic_prefix}issues", ISSUE % settings.topic_partitions)
    consumer.assign([tp])
    await consumer.seek_to_end(tp)
    await consumer.position(tp)
    taken = []
    try:
        first = join([encode_source(SourceIncrements(0, 0, [increment()]))])
        await producer.send_and_wait(f"{settings.topic_prefix}issue-deltas", first, partition=tp.partition)
        await consumer.getone()
        for _ in range(changes):
            change, since = command(), time.perf_counter()
            value = encode_json(DeltaRecord(command=change))
            await producer.send_and_wait(
                f"{settings.topic_prefix}issue-deltas", value, partition=tp.partition
            )
            while not is_done(decode_issue((await consumer.getone()).value or b""), change.id):
                pass
            taken.append(time.perf_counter() - since)
    finally:
        await consumer.stop()
        await producer.stop()
    return taken


async def calls(settings: KafkaSettings, changes: int) -> list[float]:
    """Seconds of each call."""
    taken = []
    for _ in range(changes):
        since = time.perf_counter()
        await Commands(settings, 10).apply([command()])
        taken.append(time.perf_counter() - since)
    return taken


async def measure(environ: dict[str, str], changes: int) -> None:
    """Print both."""
    settings = load(KafkaSettings, environ)
    await ensure_topics(settings)
    worker = await asyncio.create_subprocess_exec(sys.executable, "-m", "cli.processors", env=environ)
    try:
        for name, figures in (
            ("connected", await connected(settings, changes)),
            ("call", await calls(settings, changes)),
        ):
            ordered = sorted(figures)
            print(
                f"{name}: p50 {statistics.median(ordered) * 1000:.0f} ms,"
                f" p95 {ordered[int(len(ordered) * 0.95)] * 1000:.0f} ms, most {ordered[-1] * 1000:.0f} ms"
            )
    finally:
        worker.terminate()
        await worker.wait()


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=100)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kafka = LocalKafka(Path(folder) / "kafka", CACHE).start(120)
        environ = {
            "PATH": os.environ["PATH"],
            "SVC_KAFKA_BOOTSTRAP": kafka.bootstrap,
            "SVC_TOPIC_PREFIX": "bench.",
            "SVC_PROCESSORS_HEALTH_PORT": str(free_port()),
            "SVC_DATA_DIR": folder,
        }
        try:
            asyncio.run(measure(environ, given.changes))
        finally:
            kafka.stop()


if __name__ == "__main__":
    main()
