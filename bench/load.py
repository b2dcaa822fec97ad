"""The load of the pipeline: gzip batches, prepared as a file, and a separate process that posts them.

So the measured CPU includes neither the making of the events nor their compression, nor the client.
"""

import asyncio
import gzip
import random
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import aiohttp
import msgspec
import uvloop
from msgspec import Raw, Struct

from bench.servers import headers
from cli.demo.sample_events import renewed
from cli.send.send_batches import HEAD, TAIL, batches
from schemas.ids import uuid7
from schemas.times import iso, to_ms

PROJECTS: Final = 5
REPEATS: Final = 0.04
"""Share of repeated ids."""
REPEATABLE: Final = 5_000
"""The last events, which may be repeated: in the same chunk, the next one or much later."""
CONNECTIONS: Final = 24
PAST: Final = timedelta(minutes=30)


class LoadBatch(Struct, array_like=True, frozen=True):
    """A request: the index of its project, the number of its events, and its gzip body."""

    project: int
    events: int
    body: bytes


class LoadFile(Struct, array_like=True, frozen=True):
    """All requests, the number of distinct ids in them, and the bytes of their events before compression."""

    requests: list[LoadBatch]
    distinct: int
    size: int

    @property
    def count(self) -> int:
        """All events."""
        return sum(request.events for request in self.requests)


class SendResult(Struct, frozen=True):
    """When the first request was sent (Unix time), the seconds of all, and the number of answers but 202."""

    began: float
    seconds: float
    refused: int


class EventStream:
    """An endless, reproducible stream of real events under new ids, of the last `past`; some are repeated later.

    Some issues are much more frequent than others; with `shuffled`, others than those of the sample's first
    events.
    """

    def __init__(
        self,
        samples: Sequence[dict[str, Any]],
        seed: int,
        repeats: float,
        past: timedelta,
        *,
        shuffled: bool = False,
    ) -> None:
        self._random = random.Random(seed)
        self._now, self._past, self._repeats = datetime.now(UTC), past, repeats
        self._samples = [msgspec.json.encode(renewed(sample, self._now)) for sample in samples]
        if shuffled:
            self._random.shuffle(self._samples)
        self._recent: list[bytes] = []
        self.distinct = self.repeated = 0

    def events(self, count: int) -> Iterator[bytes]:
        """The next `count` events as JSON."""
        for _ in range(count):
            yield self._repeat() if self._recent and self._random.random() < self._repeats else self._fresh()

    def _repeat(self) -> bytes:
        self.repeated += 1
        return self._random.choice(self._recent)

    def _fresh(self) -> bytes:
        event = msgspec.json.decode(
            self._samples[int(len(self._samples) * self._random.random() ** 3)], type=dict[str, Raw]
        )
        moment = self._now - self._past * self._random.random() ** 4
        number = uuid7(to_ms(moment))
        event["id"], event["timestamp"] = Raw(f'"{number}"'.encode()), Raw(f'"{iso(to_ms(moment))}"'.encode())
        self._change(event, number)
        line = msgspec.json.encode(event)
        self.distinct += 1
        if len(self._recent) < REPEATABLE:
            self._recent.append(line)
        else:
            self._recent[self._random.randrange(REPEATABLE)] = line
        return line

    def _change(self, event: dict[str, Raw], number: UUID) -> None:
        """Change an event before it is sent."""


def prepare_load(samples: Sequence[dict[str, Any]], events: int, repeats: float = REPEATS) -> LoadFile:
    """At least `events` events of the last half hour in batches of up to 100, some of them sent twice."""
    chance = random.Random(1)
    streams = [EventStream(samples, seed, repeats, PAST, shuffled=True) for seed in range(PROJECTS)]
    requests: list[LoadBatch] = []
    size = count = 0
    while count < events:
        # Some projects send much more than others.
        index = int(PROJECTS * chance.random() ** 1.7)
        for batch in batches(streams[index].events(100)):
            body = HEAD + b",".join(batch.events) + TAIL
            requests.append(
                LoadBatch(index, len(batch.events), gzip.compress(body, compresslevel=1, mtime=0))
            )
            size += sum(map(len, batch.events))
            count += len(batch.events)
    return LoadFile(requests, sum(stream.distinct for stream in streams), size)


@cache
def _read(path: Path) -> LoadFile:
    return msgspec.msgpack.decode(path.read_bytes(), type=LoadFile)


def ready(path: Path) -> None:
    """Read a file before the clock runs."""
    _read(path)


def post(path: Path, url: str, tokens: Sequence[str]) -> SendResult:
    """Post all requests of a file, with a token for each project."""
    return uvloop.run(_send(_read(path), url, tokens))


async def _send(file: LoadFile, url: str, tokens: Sequence[str]) -> SendResult:
    waiting, refused = iter(file.requests), 0
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=CONNECTIONS)) as session:

        async def work() -> None:
            nonlocal refused
            for request in waiting:
                of_project = headers(tokens[request.project], zipped=True)
                async with session.post(url, data=request.body, headers=of_project) as answer:
                    refused += answer.status != 202

        began, started = time.time(), time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(CONNECTIONS):
                group.create_task(work())
        return SendResult(began, time.perf_counter() - started, refused)
