"""Chunks of made-up events on `events`, and their expected counts."""

import random
from collections import Counter
from typing import Any

import msgspec
from aiokafka import AIOKafkaProducer

from schemas.chunks import EVENTS_FORMAT, FORMAT_HEADER, ChunkEvent, encode_chunk
from schemas.ids import event_partition, uuid7
from schemas.times import iso

NOW_MS = 1_790_000_000_000
PROJECTS = (7, 8)
HEADERS = [(FORMAT_HEADER, EVENTS_FORMAT)]


def event(event_id: str, kind: int, ms: int) -> dict[str, Any]:
    """An event of one of many kinds of error: each kind is its own issue."""
    return {
        "id": event_id,
        "timestamp": iso(ms),
        "kind": "error",
        "platform": "javascript",
        "release": f"shop@1.{kind % 3}.0+1",
        "environment": "prod",
        "device": {"os": "web", "osVersion": "1"},
        "app": {"version": "1"},
        "user": {"id": f"u{kind % 11}"},
        "error": {
            "type": f"Kind{kind}Error",
            "message": "it broke",
            "stack": [
                {
                    "function": f"handler{kind}",
                    "file": f"src/part{kind}.js",
                    "line": 3,
                    "column": 7,
                    "inApp": True,
                }
            ],
        },
    }


class Feed:
    """Makes chunks with repeats; `expected` has the counts by project."""

    def __init__(self, partitions: int, seed: int, kinds: int = 40, now_ms: int = NOW_MS) -> None:
        self.partitions = partitions
        self.now_ms = now_ms
        self.expected: Counter[int] = Counter()
        self.ids: set[tuple[int, bytes]] = set()
        self.sent = 0
        self._random = random.Random(seed)
        self._kinds = kinds
        self._known: list[list[ChunkEvent]] = [[] for _ in range(partitions)]
        self._waiting: list[list[ChunkEvent]] = [[] for _ in range(partitions)]

    def chunk(self, partition: int, size: int, repeats: float = 0.2) -> bytes:
        """The value of one record of a partition, a share of whose events came before."""
        events: list[ChunkEvent] = []
        while len(events) < size:
            known = self._known[partition]
            if known and self._random.random() < repeats:
                events.append(self._random.choice(known))
            else:
                events.append(self._new(partition))
        self.sent += size
        return encode_chunk(events)

    def _new(self, partition: int) -> ChunkEvent:
        while not self._waiting[partition]:
            made = self._made()
            self._waiting[event_partition(made.project, made.id, self.partitions)].append(made)
        made = self._waiting[partition].pop()
        self._known[partition].append(made)
        self.ids.add((made.project, made.id))
        self.expected[made.project] += 1
        return made

    def _made(self) -> ChunkEvent:
        ms = self.now_ms + self._random.randrange(7_200_000)
        made = uuid7(ms)
        body = event(str(made), self._random.randrange(self._kinds), ms)
        return ChunkEvent(self._random.choice(PROJECTS), made.bytes, ms, "test/1", msgspec.json.encode(body))


async def produce(bootstrap: str, topic: str, records: list[tuple[int, bytes]]) -> None:
    """Append values to partitions, in order."""
    async with AIOKafkaProducer(
        bootstrap_servers=bootstrap, linger_ms=5, max_batch_size=1 << 20, max_request_size=4 << 20
    ) as producer:
        sent = [await producer.send(topic, v, partition=p, headers=HEADERS) for p, v in records]
        for one in sent:
            await one
