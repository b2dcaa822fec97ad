"""The floor's Faust worker: drops repeated ids, fingerprints, and keeps the aggregate of each issue."""

import asyncio
import logging
import os
import sys
from collections import defaultdict
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
    """The fields of a frame for the fingerprint."""

    file: str
    inApp: bool
    function: str | None = None


class GroupingError(Struct):
    """The fields of an error for the fingerprint."""

    type: str
    message: str
    stack: list[GroupingFrame]
    cause: "GroupingError | None" = None


class GroupingEvent(Struct):
    """The fields of an event for the fingerprint."""

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
    """The outputs of a batch of one partition: its decisions, the grouped chunks, and the sums of each record."""
    known, decisions, grouped, sums = seen[partition], [], [], []
    for message in messages:
        of_record: dict[tuple[int, int], Sum] = {}
        new, ids, prints = bytearray(), bytearray(), bytearray()
        for position, item in enumerate(records.decode_items(message.value)):
            if item.id in known:
                continue
            known.add(item.id)
            new.append(position)
            ids += item.id
            event = decode_event(decompress(item.payload))
            number, time, error = fingerprint(event.error), event.timestamp, event.error
            prints += number.to_bytes(8, "little")
            total = of_record.setdefault(
                (item.project, number), [0, time, time, error.type, error.message[:TITLE]]
            )
            total[0] += 1
            total[1], total[2] = min(total[1], time), max(total[2], time)
        decisions.append((message.offset, bytes(new), bytes(ids)))
        grouped.append(records.encode((message.offset, bytes(new), bytes(prints), message.value)))
        sums.append((message.offset, of_record))
    return records.encode(decisions), grouped, sums


async def send(topic: str, partition: int, value: bytes, key: bytes | None = None) -> "asyncio.Future[Any]":
    """Hand a record to the producer, which batches them; the future completes when Kafka has it."""
    future: asyncio.Future[Any] = await producer.send(topic, value, key, partition=partition)
    return future


@app.agent(events)
async def group(stream: Any) -> None:
    """Decisions first, then their outputs, then the offsets."""
    await start()
    async for taken in stream.noack_take(TAKE, within=0.02):
        by_partition = defaultdict[int, list[Any]](list)
        for event in taken:
            by_partition[event.message.partition].append(event.message)
        decided = {partition: decide(partition, messages) for partition, messages in by_partition.items()}
        keys = {partition: b"%d/%d" % (partition, by_partition[partition][0].offset) for partition in decided}
        await asyncio.gather(
            *[await send("seen", partition, decided[partition][0], key) for partition, key in keys.items()]
        )
        sent = []
        targets = defaultdict[int, list[Any]](list)
        for partition, (_, grouped, sums) in decided.items():
            sent += [await send("grouped", partition, value) for value in grouped]
            for offset, of_record in sums:
                pieces = defaultdict[int, list[Any]](list)
                for (project, number), total in of_record.items():
                    pieces[number % records.PARTITIONS].append((project, number, *total))
                for target, piece in pieces.items():
                    targets[target].append((partition, offset, piece))
        sent += [await send("deltas", target, records.encode(values)) for target, values in targets.items()]
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
                    issue = issues.setdefault((project, number), Issue(0, first, last, kind, title, 0, {}))
                    if issue.counted.get(partition, -1) >= offset:
                        continue
                    issue.events += count
                    issue.version += 1
                    issue.counted[partition] = offset
                    issue.first, issue.last = min(issue.first, first), max(issue.last, last)
                    changed[project, number] = event.message.partition
        await asyncio.gather(
            *[
                await send("issues", target, records.encode(issues[key]), b"%d/%d" % key)
                for key, target in changed.items()
            ]
        )
        for event in taken:
            event.ack()


if __name__ == "__main__":
    for name in ("aiokafka", "faust", "mode", "asyncio"):
        logging.getLogger(name).setLevel(logging.WARNING)
    sys.argv = ["floor", "worker", "-l", "warn", "--without-web"]
    app.main()
