"""The floor's Faust worker: drops repeated ids, fingerprints, and keeps the aggregate of each issue."""

import asyncio
import logging
import os
import sys
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import faust
import msgspec
from msgspec import Struct

from bench.floors.pipeline import records

TAKE, DELTAS_TAKE, DELTAS_SECONDS = 120, 2000, 2.0
TITLE = 120

app = faust.App(
    "floor",
    broker=f"kafka://{records.BOOTSTRAP}",
    datadir=os.environ["FLOOR_DATA"],
    store="memory://",
    topic_allow_declare=False,
    topic_disable_leader=True,
    web_enabled=False,
    stream_wait_empty=False,
    stream_recovery_delay=0,
    consumer_auto_offset_reset="earliest",
    key_serializer="raw",
    value_serializer="raw",
    broker_max_poll_records=200,
    stream_buffer_maxsize=256,
    consumer_max_fetch_size=4 << 20,
)


class GroupingFrame(Struct, gc=False):
    """What the fingerprint needs of a frame."""

    file: str
    inApp: bool
    function: str | None = None


class GroupingError(Struct):
    """What it needs of an error."""

    type: str
    message: str
    stack: list[GroupingFrame]
    cause: "GroupingError | None" = None


class GroupingEvent(Struct):
    """What it needs of an event."""

    timestamp: str
    error: GroupingError


class Issue(Struct, array_like=True):
    """The aggregate; `counted` has the last source offset of each source partition."""

    events: int
    first: str
    last: str
    type: str
    title: str
    version: int
    counted: dict[int, int]


Sum = list[Any]
"""Events, first and last time, type and title."""

decode_event = msgspec.json.Decoder(GroupingEvent).decode
decode_deltas = msgspec.msgpack.Decoder(
    list[tuple[int, int, list[tuple[int, int, int, str, str, str, str]]]]
).decode
decompress = records.given_codec().decompress
events = app.topic("events", key_type=bytes, value_type=bytes)
deltas = app.topic("deltas", key_type=bytes, value_type=bytes)
seen: list[set[bytes]] = [set() for _ in range(records.PARTITIONS)]
issues: dict[tuple[int, int], Issue] = {}
started = asyncio.Event()
producer: Any = None


def fingerprint(error: GroupingError) -> int:
    """A hash of type, and of file and function of the frames."""
    digest = blake2b(digest_size=8)
    cause: GroupingError | None = error
    while cause is not None:
        digest.update(cause.type.encode())
        frames = [frame for frame in cause.stack if frame.inApp] or cause.stack
        digest.update("\n".join([f"{frame.file} {frame.function}" for frame in frames]).encode())
        if not frames:
            digest.update(cause.message.encode())
        cause = cause.cause
    return int.from_bytes(digest.digest(), "little")


async def write(topic: str, partition: int, values: Iterable[tuple[bytes | None, bytes]]) -> list[Any]:
    """Write records in as few batches as fit; the futures complete when Kafka has them."""
    sent, batch, count = [], producer.create_batch(), 0
    for key, value in values:
        if batch.append(key=key, value=value, timestamp=None) is None:
            batch.close()
            sent.append(await producer.send_batch(batch, topic, partition=partition))
            batch, count = producer.create_batch(), 0
            batch.append(key=key, value=value, timestamp=None)
        count += 1
    batch.close()
    if count:
        sent.append(await producer.send_batch(batch, topic, partition=partition))
    return sent


async def start() -> None:
    """Open the producer once, for both agents."""
    global producer  # noqa: PLW0603 - Faust's agents are functions of a module
    if producer is None:
        producer = records.producer()
        await producer.start()
        started.set()
        records.ready()
    await started.wait()


def decide(
    partition: int, messages: list[Any]
) -> tuple[bytes, list[bytes], list[tuple[int, dict[tuple[int, int], Sum]]]]:
    """What a take of one partition leads to: its decisions, the grouped chunks, and the sums of each record."""
    known, decisions, grouped, sums = seen[partition], [], [], []
    for message in messages:
        items = records.decode_items(message.value)
        new = []
        for position, item in enumerate(items):
            if item.id not in known:
                known.add(item.id)
                new.append(position)
        of_record: dict[tuple[int, int], Sum] = {}
        prints = bytearray()
        for position in new:
            item = items[position]
            event = decode_event(decompress(item.payload))
            number, time = fingerprint(event.error), event.timestamp
            prints += number.to_bytes(8, "little")
            total = of_record.get((item.project, number))
            if total is None:
                of_record[item.project, number] = [
                    1,
                    time,
                    time,
                    event.error.type,
                    event.error.message[:TITLE],
                ]
            else:
                total[0] += 1
                total[1], total[2] = min(total[1], time), max(total[2], time)
        kept = None if len(new) == len(items) else bytes(new)
        decisions.append((message.offset, kept, b"".join([items[position].id for position in new])))
        grouped.append(records.encode((message.offset, kept, bytes(prints), message.value)))
        sums.append((message.offset, of_record))
    return records.encode(decisions), grouped, sums


@app.agent(events)
async def group(stream: Any) -> None:
    """Decisions first, then what follows from them, then the offsets."""
    await start()
    async for taken in stream.noack_take(TAKE, within=0.02):
        by_partition: dict[int, list[Any]] = {}
        for event in taken:
            by_partition.setdefault(event.message.partition, []).append(event.message)
        decided = {partition: decide(partition, messages) for partition, messages in by_partition.items()}
        sent = []
        for partition, (entry, _, _) in decided.items():
            key = b"%d/%d" % (partition, by_partition[partition][0].offset)
            sent += await write("seen", partition, [(key, entry)])
        await asyncio.gather(*sent)
        sent = []
        targets: list[list[Any]] = [[] for _ in range(records.PARTITIONS)]
        for partition, (_, grouped, sums) in decided.items():
            sent += await write("grouped", partition, [(None, value) for value in grouped])
            for offset, of_record in sums:
                pieces: list[list[Any]] = [[] for _ in range(records.PARTITIONS)]
                for (project, number), total in of_record.items():
                    pieces[number % records.PARTITIONS].append((project, number, *total))
                for target, piece in enumerate(pieces):
                    if piece:
                        targets[target].append((partition, offset, piece))
        for target, values in enumerate(targets):
            if values:
                sent += await write("deltas", target, [(None, records.encode(values))])
        await asyncio.gather(*sent)
        for event in taken:
            event.ack()


@app.agent(deltas)
async def aggregate(stream: Any) -> None:
    """Each changed issue is one record of `issues`, every two seconds."""
    await start()
    async for taken in stream.noack_take(DELTAS_TAKE, within=DELTAS_SECONDS):
        changed: dict[tuple[int, int], int] = {}
        for event in taken:
            for partition, offset, sums in decode_deltas(event.value):
                for project, number, count, first, last, kind, title in sums:
                    issue = issues.get((project, number))
                    if issue is None:
                        issue = issues[project, number] = Issue(0, first, last, kind, title, 0, {})
                    if issue.counted.get(partition, -1) >= offset:
                        continue
                    issue.events += count
                    issue.version += 1
                    issue.counted[partition] = offset
                    issue.first, issue.last = min(issue.first, first), max(issue.last, last)
                    changed[project, number] = event.message.partition
        sent = []
        for target in set(changed.values()):
            values = [
                (b"%d/%d" % key, records.encode(issues[key])) for key, one in changed.items() if one == target
            ]
            sent += await write("issues", target, values)
        await asyncio.gather(*sent)
        for event in taken:
            event.ack()


if __name__ == "__main__":
    for name in ("aiokafka", "faust", "mode", "asyncio"):
        logging.getLogger(name).setLevel(logging.WARNING)
    sys.argv = ["floor", "worker", "-l", "warn", "--without-web"]
    app.main()
