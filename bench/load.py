"""The load of the pipeline: gzip batches, prepared as a file, and a process of its own that posts them.

`python -m bench.load FILE URL CONNECTIONS TOKENS` reads the file, prints `ready`, waits for a line on its input, posts all batches, with a
token for each project (a file of lines), and prints a `SendResult` as JSON. So neither the making of the events nor their compression, nor
the CPU of the client, is in what is measured. With `--renewed` all events get new ids before.
"""

import asyncio
import gzip
import itertools
import random
import re
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal, get_args
from uuid import UUID

import aiohttp
import msgspec
import uvloop
from msgspec import Raw, Struct

from cli.demo.sample_events import renewed
from cli.send.batches import batches
from schemas.ids import uuid7
from schemas.times import iso, to_ms

Shape = Literal["real", "hot", "flood"]
SHAPES: Final = get_args(Shape)
PROJECTS: Final = 5
REPEATABLE: Final = 5_000
"""The last events, which may be repeated: in the same chunk, the next one or much later."""
HOT_SHARE: Final = 0.9
PAST: Final = timedelta(minutes=30)
_ID: Final = re.compile(rb'(?<="id":")[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}(?=")')


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


class SendResult(Struct, frozen=True):
    """When the first request was sent (Unix time) and how long all took, in seconds; `refused` counts answers but 202."""

    began: float
    seconds: float
    refused: int


class EventStream:
    """An endless, reproducible stream of real events under new ids, of the last `past`; some are repeated later.

    Some issues are much more frequent than others; with `shuffled`, others than those of the sample's first events.
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
            self._samples[int(len(self._samples) * self._rank())], type=dict[str, Raw]
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

    def _rank(self) -> float:
        """Which sample is next, as a share of all."""
        return self._random.random() ** 3

    def _change(self, event: dict[str, Raw], number: UUID) -> None:
        """Change an event before it is sent."""


class _Project(EventStream):
    """The events of one project of the last half hour."""

    def __init__(self, samples: Sequence[dict[str, Any]], shape: Shape, repeats: float, seed: int) -> None:
        super().__init__(samples, seed, repeats, PAST, shuffled=True)
        self._shape = shape

    def _rank(self) -> float:
        return 0 if self._shape == "hot" and self._random.random() < HOT_SHARE else super()._rank()

    def _change(self, event: dict[str, Raw], number: UUID) -> None:
        if self._shape == "flood":
            error = msgspec.json.decode(event["error"], type=dict[str, Raw])
            error["type"] = Raw(f'"Error{_letters(number.int)}"'.encode())
            event["error"] = Raw(msgspec.json.encode(error))


def _letters(number: int) -> str:
    """A name without digits, which grouping would leave out."""
    return "".join(chr(ord("a") + (number >> shift & 15)) for shift in range(0, 48, 4))


def prepare(
    samples: Sequence[dict[str, Any]],
    events: int,
    shape: Shape = "real",
    repeats: float = 0.04,
    projects: int = PROJECTS,
) -> LoadFile:
    """At least `events` events in batches of up to 100, some of them sent twice.

    More projects than usual have fewer errors each, other ones in turn: as many together.
    """
    chance = random.Random(1)
    errors = max(1, min(len(samples), PROJECTS * len(samples) // projects))
    endless = itertools.cycle(samples)
    streams = [
        _Project(list(itertools.islice(endless, errors)), shape, repeats, seed) for seed in range(projects)
    ]
    requests: list[LoadBatch] = []
    size = count = 0
    while count < events:
        # Some projects send much more than others.
        index = int(projects * chance.random() ** 1.7)
        for batch in batches(streams[index].events(100)):
            requests.append(LoadBatch(index, len(batch.events), batch.body))
            size += sum(map(len, batch.events))
            count += len(batch.events)
    return LoadFile(requests, sum(stream.distinct for stream in streams), size)


def renew(file: LoadFile) -> LoadFile:
    """The same events under new ids; those with one id share a new one."""
    ids: defaultdict[bytes, bytes] = defaultdict(
        lambda: str(uuid7(time.time_ns() // 1_000_000)).encode("ascii")
    )

    def renewed_batch(batch: LoadBatch) -> LoadBatch:
        text = _ID.sub(lambda found: ids[found[0]], gzip.decompress(batch.body))
        return LoadBatch(batch.project, batch.events, gzip.compress(text, 1))

    return LoadFile([renewed_batch(batch) for batch in file.requests], file.distinct, file.size)


async def send(file: LoadFile, url: str, tokens: Sequence[str], connections: int) -> SendResult:
    """Post all requests, `connections` at a time."""
    waiting, refused = iter(file.requests), 0
    async with aiohttp.ClientSession(
        headers={"Svc-Sdk": "bench/1", "Content-Type": "application/json", "Content-Encoding": "gzip"},
        connector=aiohttp.TCPConnector(limit=connections),
    ) as session:

        async def work() -> None:
            nonlocal refused
            for request in waiting:
                headers = {"Authorization": f"Bearer {tokens[request.project]}"}
                async with session.post(url, data=request.body, headers=headers) as answer:
                    refused += answer.status != 202

        began, started = time.time(), time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(connections):
                group.create_task(work())
        return SendResult(began, time.perf_counter() - started, refused)


if __name__ == "__main__":
    name, address, parallel, keys, *options = sys.argv[1:]
    load = msgspec.msgpack.decode(Path(name).read_bytes(), type=LoadFile)
    if options == ["--renewed"]:
        load = renew(load)
    print("ready", flush=True)
    sys.stdin.readline()
    result = uvloop.run(send(load, address, Path(keys).read_text(encoding="ascii").split(), int(parallel)))
    print(msgspec.json.encode(result).decode(), flush=True)
