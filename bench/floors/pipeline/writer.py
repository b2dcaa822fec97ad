"""The floor's writer: blocks of grouped events, and issues, into ClickHouse."""

import asyncio
import os
import struct
import time
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import uvloop
from aiokafka import AIOKafkaConsumer, TopicPartition
from msgspec import Struct

from bench.floors.pipeline import records, setup
from storage.client import open_client

BLOCK_ROWS, WAIT_SECONDS, ISSUES_SECONDS = 20_000, 0.5, 0.5


class StoredPart(Struct, gc=False):
    """The stored fields of an event's error, user or device."""

    type: str = ""
    message: str = ""
    id: str | None = None
    os: str = ""


class StoredEvent(Struct, gc=False):
    """The stored fields of an event."""

    timestamp: str
    platform: str
    release: str
    environment: str
    error: StoredPart
    device: StoredPart
    user: StoredPart | None = None
    tags: dict[str, str] | None = None


decode_event = msgspec.json.Decoder(StoredEvent).decode
decompress = records.given_codec().decompress


def offsets(lengths: Sequence[int]) -> Any:
    """Offsets of an Arrow column of variable length."""
    return np.concatenate(([0], np.cumsum(np.array(lengths, "i4")))).astype("i4")


class Block:
    """Rows, by column, and the offsets of `grouped` that they are from."""

    def __init__(self) -> None:
        self.columns: list[list[Any]] = [[] for _ in setup.NAMES]
        self.ranges: dict[int, tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self.columns[0])

    def feed(self, message: Any, done: dict[int, int]) -> None:
        """Add a record; a repeat is dropped by its source offset."""
        partition, chunk = message.partition, records.decode_grouped(message.value)
        first, _ = self.ranges.get(partition, (message.offset, 0))
        self.ranges[partition] = first, message.offset
        if chunk.source <= done.get(partition, -1):
            return
        done[partition] = chunk.source
        items = records.decode_items(chunk.chunk)
        new = [items[position] for position in chunk.new]
        for item, (number,) in zip(new, struct.iter_unpack("<Q", chunk.fingerprints), strict=True):
            event = decode_event(decompress(item.payload))
            user = event.user.id if event.user is not None else None
            hashed = int.from_bytes(blake2b(user.encode(), digest_size=8).digest(), "little") if user else 0
            row = (
                item.project, event.timestamp[:23], item.id[::-1], number, event.release, event.environment,
                event.platform, event.device.os, hashed, event.error.type, event.error.message,
                event.tags or {}, item.payload,
            )  # fmt: skip
            for column, value in zip(self.columns, row, strict=True):
                column.append(value)

    @property
    def token(self) -> str:
        """The token of its insert."""
        return ",".join(
            f"{partition}/{first}-{last}" for partition, (first, last) in sorted(self.ranges.items())
        )

    def table(self) -> pa.Table:
        """The rows as Arrow."""
        project, ts, ids, issue, *texts, hashed, kind, message, tags, payload = self.columns
        keys, values = [k for one in tags for k in one], [v for one in tags for v in one.values()]
        counts = offsets([len(one) for one in tags])
        sizes = [None, pa.py_buffer(offsets([len(one) for one in payload])), pa.py_buffer(b"".join(payload))]
        arrays = [
            pa.array(project, pa.uint32()),
            pa.array(np.array(ts, "datetime64[ms]")),
            pa.array(ids, pa.binary(records.ID_BYTES)),
            pa.array(issue, pa.uint64()),
            *[pa.array(text, pa.string()) for text in texts],
            pa.array(hashed, pa.uint64()),
            pa.array(kind, pa.string()),
            pa.array(message, pa.string()),
            pa.MapArray.from_arrays(
                pa.array(counts), pa.array(keys, pa.string()), pa.array(values, pa.string())
            ),
            pa.Array.from_buffers(pa.binary(), len(payload), sizes),
        ]
        return pa.table(arrays, names=list(setup.NAMES))


def consumer(topic: str, **options: Any) -> AIOKafkaConsumer:
    """A consumer that commits when it is told to."""
    return AIOKafkaConsumer(
        topic,
        bootstrap_servers=records.BOOTSTRAP,
        group_id=f"writer-{topic}",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=4 << 20,
        fetch_max_bytes=16 << 20,
        check_crcs=False,
        **options,
    )


async def write_events() -> None:
    """Blocks of `grouped`: insert, commit; the next grows meanwhile."""
    reader, client = consumer("grouped", fetch_max_wait_ms=100), open_client(os.environ["FLOOR_CLICKHOUSE"])
    await reader.start()
    records.ready()

    async def flush(block: Block) -> None:
        settings = {**setup.SETTINGS, "insert_deduplication_token": block.token}
        await asyncio.to_thread(lambda: client.insert_arrow("ingest", block.table(), settings=settings))
        await reader.commit(
            {TopicPartition("grouped", partition): last + 1 for partition, (_, last) in block.ranges.items()}
        )

    block, since, busy, done = Block(), 0.0, asyncio.create_task(asyncio.sleep(0)), dict[int, int]()
    while True:
        for messages in (await reader.getmany(timeout_ms=50, max_records=40)).values():
            since = since or time.monotonic()
            for message in messages:
                block.feed(message, done)
        waited = len(block) and time.monotonic() - since > WAIT_SECONDS
        if len(block) >= BLOCK_ROWS or (waited and busy.done()):
            await busy
            busy, block, since = asyncio.create_task(flush(block)), Block(), 0.0


async def write_issues() -> None:
    """The newest record of each issue."""
    reader, client = (
        consumer("issues", fetch_max_wait_ms=500, fetch_min_bytes=1 << 16),
        open_client(os.environ["FLOOR_CLICKHOUSE"]),
    )
    await reader.start()
    names = ["project_id", "issue", "n", "first", "last", "type", "title", "version"]
    kinds = [pa.uint32(), pa.uint64(), pa.uint64(), *[pa.string()] * 4, pa.uint64()]
    while True:
        got = await reader.getmany(timeout_ms=1000, max_records=20_000)
        newest = {message.key: message.value for messages in got.values() for message in messages}
        if newest:
            rows = [
                (*map(int, key.split(b"/")), *msgspec.msgpack.decode(value)[:6])
                for key, value in newest.items()
            ]
            columns = [
                pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)
            ]
            await asyncio.to_thread(client.insert_arrow, "issues", pa.table(columns, names=names))
            await reader.commit()
            await asyncio.sleep(ISSUES_SECONDS)


async def main() -> None:
    """Both, until the process is killed."""
    await asyncio.gather(write_events(), write_issues())


if __name__ == "__main__":
    uvloop.run(main())
