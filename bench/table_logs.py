"""Topics as processors leave them after hours: ids of `seen`, records of `events` that were read, and states of `issues`."""

import asyncio
import random
import time
from collections.abc import Iterator
from typing import Final

from aiokafka import AIOKafkaProducer

from processors.grouper.dedup_log import KEY_BYTES, DedupEntry, DedupRecord, encode, entry_key
from schemas.chunks import EVENTS_FORMAT, FORMAT_HEADER, encode_chunk
from schemas.ids import hex64
from schemas.issues import IssueRecord, encode_json

HEADERS: Final = [(FORMAT_HEADER, EVENTS_FORMAT)]


async def append(bootstrap: str, topic: str, records: Iterator[tuple[int, bytes | None, bytes]]) -> int:
    """Write records; returns how many."""
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, linger_ms=20, max_batch_size=1 << 20, max_request_size=4 << 20
    )
    await producer.start()
    count = 0
    pending = []
    for partition, key, value in records:
        pending.append(await producer.send(topic, value, key, partition=partition, headers=HEADERS))
        count += 1
        if len(pending) >= 200:
            await asyncio.gather(*pending)
            pending.clear()
    await asyncio.gather(*pending)
    await producer.stop()
    return count


def logged_ids(
    ids: int, partitions: int, block: int, chunk: int, *, hour: bool
) -> Iterator[tuple[int, bytes, bytes]]:
    """Records of `seen`: `block` ids an entry, from source records of `chunk` ids, of the last six days or of an `hour`."""
    rng, now = random.Random(1), time.time_ns() // 1_000_000
    share = ids // partitions
    for partition in range(partitions):
        for start in range(0, share, block):
            keys = bytearray(rng.randbytes(KEY_BYTES * block))
            if hour:
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
            day = now if hour else now - (share - start) * 6 * 86_400_000 // share
            # The last batch is never merged: a log that ends with a merged entry has lost what followed.
            last = start + block >= share
            first = records[-1].offset + 1 if last else records[0].offset
            entry = DedupEntry(day, first, records, merged=not last)
            yield partition, entry_key(partition, entry.first, entry.last), encode(entry)


def read_records(ids: int, partitions: int, chunk: int) -> Iterator[tuple[int, bytes | None, bytes]]:
    """Empty records of `events`, as many as the table marks as read."""
    for partition in range(partitions):
        for _ in range(ids // partitions // chunk):
            yield partition, None, encode_chunk([])


def issue_states(issues: int, states: int, partitions: int) -> Iterator[tuple[int, bytes, bytes]]:
    """States of issues, one after the other, as an aggregator writes them."""
    now = time.time_ns() // 1_000_000
    names = {f"name-{n}": 1_000 for n in range(5)}
    for version in range(states):
        issue = version % issues * 0x9E3779B97F4A7C15 % (1 << 64)
        record = IssueRecord(
            id=hex64(issue),
            project_id="1",
            fingerprints=(hex64(issue),),
            error_type="ConnectionResetError",
            message="connection to <host> was reset by its peer after <n> bytes" * 2,
            culprit="application.services.payments.settle",
            first_seen_ms=now,
            last_seen_ms=now,
            users_sketch="A" * 400,
            releases=names,
            environments=names,
            platforms={"python": 1_000},
            hours={now // 3_600_000 - n: 100 for n in range(24)},
            version=1 + version // issues,
            positions=dict.fromkeys(range(partitions), version),
        )
        yield issue % partitions, record.id.encode(), encode_json(record)
