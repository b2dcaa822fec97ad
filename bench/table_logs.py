"""Topics as processors leave them after hours: ids of `seen`, records of `events` that were read, and states of `issues`."""

import asyncio
import random
import time
from collections.abc import Iterator
from typing import Final

from aiokafka import AIOKafkaProducer

from processors.grouper.dedup_log import KEY_BYTES, DedupEntry, DedupRecord, encode, entry_key
from schemas.chunks import EVENTS_FORMAT, FORMAT_HEADER, encode_chunk

HEADERS: Final = [(FORMAT_HEADER, EVENTS_FORMAT)]


async def append(bootstrap: str, topic: str, records: Iterator[tuple[int, bytes | None, bytes]]) -> None:
    """Write records."""
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, linger_ms=20, max_batch_size=1 << 20, max_request_size=4 << 20
    )
    await producer.start()
    pending = []
    for partition, key, value in records:
        pending.append(await producer.send(topic, value, key, partition=partition, headers=HEADERS))
        if len(pending) >= 200:
            await asyncio.gather(*pending)
            pending.clear()
    await asyncio.gather(*pending)
    await producer.stop()


def logged_ids(ids: int, partitions: int, block: int, chunk: int) -> Iterator[tuple[int, bytes, bytes]]:
    """Records of `seen`: `block` ids of the last hour an entry, from source records of `chunk` ids."""
    rng, now = random.Random(1), time.time_ns() // 1_000_000
    share = ids // partitions
    for partition in range(partitions):
        for start in range(0, share, block):
            keys = bytearray(rng.randbytes(KEY_BYTES * block))
            keys[::KEY_BYTES] = bytes(block)
            records = [
                DedupRecord(
                    at // chunk,
                    chunk,
                    None,
                    bytes(keys[(at - start) * KEY_BYTES : (at - start + chunk) * KEY_BYTES]),
                )
                for at in range(start, start + block, chunk)
            ]
            # The last batch is never merged: a log that ends with a merged entry has lost what followed.
            last = start + block >= share
            first = records[-1].offset + 1 if last else records[0].offset
            entry = DedupEntry(now, first, records, merged=not last)
            yield partition, entry_key(partition, entry.first, entry.last), encode(entry)


def read_records(ids: int, partitions: int, chunk: int) -> Iterator[tuple[int, bytes | None, bytes]]:
    """Empty records of `events`, as many as the table marks as read."""
    for partition in range(partitions):
        for _ in range(ids // partitions // chunk):
            yield partition, None, encode_chunk([])
