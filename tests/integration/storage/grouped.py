"""Records of the topic `grouped` as processors would write them, and a writer as a separate process."""

import json
import os
import random
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import pyarrow as pa
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import GroupCoordinatorNotAvailableError
from aiokafka.structs import OffsetAndMetadata

from broker.topics import ensure_topics
from local.ports import free_port
from schemas.chunks import (
    EVENTS_FORMAT,
    FORMAT_HEADER,
    GROUPED_FORMAT,
    SOURCE_HEADER,
    ChunkEvent,
    GroupedRecord,
    Grouping,
    decode_grouped,
    encode_chunk,
    encode_grouped,
)
from schemas.environment import load
from schemas.ids import uuid7
from schemas.settings import WriterSettings
from schemas.times import DAY_MS, MINUTE_MS, iso
from storage.client import INSERT_SETTINGS, Client, open_client, scalar
from storage.exactly_once.block_plan import BlockPlan, NoBlock, decode_plan, encode_plan
from storage.exactly_once.blocks import Block
from storage.exactly_once.server_state import server_state
from storage.exactly_once.source_values import open_source_values
from storage.tables.migrations.migrate import migrate
from tests.eventually import eventually
from tests.forked import ForkedProcess
from tests.integration.processors import readback

PROJECTS = (7, 8)
RELEASES = ("shop@1.0.0+1", "shop@1.1.0+2")


def event_json(number: int, sent_ms: int, **changes: Any) -> bytes:
    """An event whose number changes every field that has a column."""
    event = {
        "timestamp": iso(sent_ms),
        "kind": "error",
        "platform": "javascript",
        "release": RELEASES[number % 2],
        "environment": ("prod", "staging")[number % 3 == 0],
        "device": {"os": "ios", "osVersion": "18", "model": "iPhone 15", "locale": "de-DE"},
        "app": {"version": "1.0.0"},
        "error": {
            "type": "TypeError",
            "message": f"Cannot read number {number}",
            "stack": [{"file": f"src/f{number % 9}.js", "function": "run", "line": 1, "inApp": True}],
        },
        "user": {"id": f"user-{number % 40}"},
        "tags": {"tier": ("free", "pro")[number % 2], "n": str(number % 10)},
    }
    return msgspec.json.encode(event | changes)


def chunk_event(
    number: int, *, spread_days: int = 0, now_ms: int | None = None, **changes: Any
) -> ChunkEvent:
    """An event as a chunk carries it; its time is up to `spread_days` before its receipt."""
    now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    sent = now - (number % (spread_days * 4 + 1)) * DAY_MS // 4
    payload = event_json(number, sent, **changes)
    return ChunkEvent(PROJECTS[number % len(PROJECTS)], uuid7(now).bytes, now, "js/1.0", payload)


def grouped(partition: int, offset: int, source: bytes, events: Sequence[ChunkEvent]) -> bytes:
    """The decisions about a record of `events` with all of these events, in five issues."""
    groupings = [Grouping(fingerprint, "v1", "frames", ("TypeError",)) for fingerprint in range(100, 105)]
    return encode_grouped(
        GroupedRecord(
            partition=partition,
            offset=offset,
            crc=crc32(source),
            kept=list(range(len(events))),
            grouping_of=[number % len(groupings) for number in range(len(events))],
            groupings=groupings,
            projects=[0] * len(groupings),
            retention={event.project: (90, 90) for event in events},
            minutes=[event.received_ms // MINUTE_MS for event in events],
        )
    )


def insert(client: Client, rows: pa.Table, token: str) -> None:
    """A block of events, as a writer inserts it."""
    client.insert_arrow("ingest", rows, settings={**INSERT_SETTINGS, "insert_deduplication_token": token})


class Stage:
    """A broker's topics and a database, both empty, and writers upon them."""

    def __init__(self, bootstrap: str, url: str, prefix: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.environ = {
            "SVC_KAFKA_BOOTSTRAP": bootstrap,
            "SVC_CLICKHOUSE_URL": url,
            "SVC_TOPIC_PREFIX": prefix,
            "SVC_WRITER_GROUP": f"{prefix}writer",
            "SVC_PROCESSORS_APP": f"{prefix}processors",
            "SVC_TOPIC_PARTITIONS": "3",
            "SVC_KAFKA_SESSION_SECONDS": "3",
        }
        self.settings = load(WriterSettings, self.environ)
        self.topic = f"{prefix}grouped"
        self.events = f"{prefix}events"
        self.sent: dict[int, set[bytes]] = {project: set() for project in PROJECTS}
        self._numbers = 0

    async def prepare(self) -> "Stage":
        """Create topics and tables."""
        await ensure_topics(self.settings)
        migrate(self.url)
        return self

    async def produce(self, chunks: int, events: int = 50, repeat: float = 0.2, **changes: Any) -> None:
        """Send chunks and their decisions to random partitions; some come again, as after a processor's crash."""
        sources: dict[TopicPartition, int] = {}
        async with AIOKafkaProducer(bootstrap_servers=self.settings.kafka_bootstrap, acks="all") as producer:
            for _ in range(chunks):
                partition = random.randrange(self.settings.topic_partitions)
                value = await self.accept(producer, partition, events, **changes)
                sources[TopicPartition(self.events, partition)] = decode_grouped(value).offset + 1
                await self.send(producer, partition, value)
                if random.random() < repeat:
                    await self.send(producer, partition, value)

        group = {"group_id": self.settings.processors_app, "enable_auto_commit": False}
        async with AIOKafkaConsumer(bootstrap_servers=self.settings.kafka_bootstrap, **group) as processors:
            processors.assign(list(sources))
            await processors.commit(sources)

    async def accept(self, producer: AIOKafkaProducer, partition: int, count: int, **changes: Any) -> bytes:
        """Send a chunk of new events; returns the decisions about it."""
        events = [self._event(**changes) for _ in range(count)]
        source, headers = encode_chunk(events), [(FORMAT_HEADER, EVENTS_FORMAT)]
        sent = await producer.send_and_wait(self.events, source, partition=partition, headers=headers)
        return grouped(partition, sent.offset, source, events)

    async def send(self, producer: AIOKafkaProducer, partition: int, value: bytes) -> None:
        """One record as a processor writes it."""
        headers = [
            (FORMAT_HEADER, GROUPED_FORMAT),
            (SOURCE_HEADER, b"%d/%d" % (partition, decode_grouped(value).offset)),
        ]
        await producer.send_and_wait(self.topic, value, partition=partition, headers=headers)

    def _event(self, **changes: Any) -> ChunkEvent:
        event = chunk_event(self._numbers, **{"spread_days": 10, **changes})
        self._numbers += 1
        self.sent[event.project].add(event.id)
        return event

    @property
    def total(self) -> int:
        """How many events were sent."""
        return sum(map(len, self.sent.values()))

    def client(self) -> Client:
        """A client of the database."""
        return open_client(self.url)

    async def dead_letters(self) -> list[readback.Record]:
        """All dead letters."""
        return await readback.read(self.settings.kafka_bootstrap, f"{self.settings.topic_prefix}dead-letters")

    def writer(self, name: str = "0", **environ: str) -> "Writer":
        """A writer, started."""
        return Writer(
            self.environ | {"SVC_WRITER_WORKER": name} | environ, self.folder / f"writer-{name}.log"
        )


async def planned(stage: Stage) -> tuple[Block, BlockPlan]:
    """The state after a writer was killed between the plan of a block of all records and its insert."""
    partitions = [TopicPartition(stage.topic, number) for number in range(stage.settings.topic_partitions)]
    async with AIOKafkaConsumer(
        bootstrap_servers=stage.settings.kafka_bootstrap,
        group_id=stage.settings.writer_group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    ) as consumer:
        consumer.assign(partitions)
        ends = await consumer.end_offsets(partitions)
        block = Block()
        async with open_source_values(stage.settings, range(len(partitions))) as sources:
            for partition in partitions:
                seen = -1
                while await consumer.position(partition) < ends[partition]:
                    for record in (await consumer.getmany(partition, timeout_ms=1000)).get(partition, []):
                        [source] = await sources.of([record])
                        seen = block.feed(record, source, seen)
        client = stage.client()
        plan = block.plan(server_state(client).mark)
        client.close()
        await consumer.commit(
            {
                TopicPartition(stage.topic, span.partition): OffsetAndMetadata(span.first, encode_plan(plan))
                for span in plan.ranges
            }
        )
    return block, plan


class Writer:
    """`svc writer`."""

    def __init__(self, environ: dict[str, str], log: Path) -> None:
        self.port = free_port()
        self.log = log
        self._environ = os.environ | environ | {"SVC_WRITER_HEALTH_PORT": str(self.port)}
        self.process = self._start()

    def _start(self) -> ForkedProcess:
        return ForkedProcess("cli.writer", self._environ, self.log)

    def kill(self) -> None:
        """`kill -9`."""
        self.process.kill()
        self.process.wait()

    def restart(self) -> None:
        """Start again under the same name."""
        self.process = self._start()

    def freeze(self) -> None:
        """Freeze it."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self.process.send_signal(signal.SIGCONT)

    def stop(self) -> int:
        """End it in good order; its exit code."""
        self.process.terminate()
        return self.process.wait(120)

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of a path of its health server; status 0 while it doesn't listen."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{path}", timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def health(self, part: str) -> dict[str, object]:
        """One part of `readyz`; empty while it doesn't listen."""
        body = self.get("readyz")[1]
        parts: dict[str, dict[str, object]] = json.loads(body)["parts"] if body else {}
        return parts.get(part, {})


@contextmanager
def ended(*writers: Writer) -> Iterator[None]:
    """Whatever happens, no writer stays behind."""
    try:
        yield
    finally:
        for writer in writers:
            if writer.process.poll() is None:
                writer.kill()


COUNTS = {
    "events": "SELECT count() FROM events",
    "distinct": "SELECT uniqExact(project_id, id) FROM events",
    "payloads": "SELECT count() FROM payloads",
    "distinct payloads": "SELECT uniqExact(project_id, id) FROM payloads",
    "issue_day": "SELECT sum(n) FROM issue_day",
    "issue_day_er": "SELECT sum(n) FROM issue_day_er",
    "issue_hour": "SELECT sum(n) FROM issue_hour",
    "project_hour": "SELECT sum(n) FROM project_hour",
    "tag_day": "SELECT toUInt64(sum(n) / 2) FROM tag_day",
}


def counts(client: Client) -> dict[str, int]:
    """The number of events according to each table; every event has two tags."""
    return {name: int(scalar(client, sql)) for name, sql in COUNTS.items()}


def exactly(total: int) -> dict[str, int]:
    """The expected result of `counts`."""
    return dict.fromkeys(COUNTS, total)


async def drained(stage: Stage) -> bool:
    """Whether the writer's group has read `grouped` to its end and has nothing under way."""
    admin = AIOKafkaAdminClient(bootstrap_servers=stage.settings.kafka_bootstrap)
    consumer = AIOKafkaConsumer(bootstrap_servers=stage.settings.kafka_bootstrap)
    await admin.start()
    await consumer.start()
    try:
        places = [
            TopicPartition(stage.topic, partition) for partition in range(stage.settings.topic_partitions)
        ]
        ends = await consumer.end_offsets(places)
        found = await admin.list_consumer_group_offsets(stage.settings.writer_group, partitions=places)
    except GroupCoordinatorNotAvailableError:
        # The first group of a new broker: nothing was committed yet.
        return False
    finally:
        await admin.close()
        await consumer.stop()
    return all(
        partition in found
        and max(found[partition].offset, 0) == end
        and isinstance(decode_plan(found[partition].metadata or ""), NoBlock)
        for partition, end in ends.items()
    )


async def whole(stage: Stage, timeout: float = 60.0) -> dict[str, int]:
    """Wait until all records are written; returns the counts of the tables."""

    async def done() -> bool:
        return await drained(stage)

    await eventually(done, timeout)
    client = stage.client()
    try:
        return counts(client)
    finally:
        client.close()
