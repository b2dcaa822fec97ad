"""The floor's edge: inflate, check each event, compress it, and answer 202 once Kafka has its chunk."""

import asyncio
import json
import os
import time
from zlib import crc32

import msgspec
import uvloop
from aiohttp import web
from isal import isal_zlib
from msgspec import Raw, Struct

from bench.floors.pipeline import records

LINGER_SECONDS = 0.005
CHUNK_EVENTS = 100
CHUNK_BYTES = 256 << 10
MAX_BODY = 1 << 20


class Batch(Struct):
    """The wrapper."""

    events: list[Raw]


decode_batch = msgspec.json.Decoder(Batch).decode
decode_event = msgspec.json.Decoder(records.FloorEvent).decode


class Chunks:
    """The open chunk of each partition."""

    def __init__(self, producer: object) -> None:
        self._producer = producer
        self._loop = asyncio.get_running_loop()
        self._items: list[list[tuple[int, bytes, int, bytes]]] = [[] for _ in range(records.PARTITIONS)]
        self._sizes = [0] * records.PARTITIONS
        self._done = [self._loop.create_future() for _ in range(records.PARTITIONS)]
        self._timers: list[asyncio.TimerHandle | None] = [None] * records.PARTITIONS
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, partition: int, item: tuple[int, bytes, int, bytes]) -> "asyncio.Future[None]":
        """Add an event; the future completes with its chunk."""
        items, done = self._items[partition], self._done[partition]
        if not items:
            self._timers[partition] = self._loop.call_later(LINGER_SECONDS, self._flush, partition)
        items.append(item)
        self._sizes[partition] += len(item[3])
        if len(items) >= CHUNK_EVENTS or self._sizes[partition] >= CHUNK_BYTES:
            self._flush(partition)
        return done

    def _flush(self, partition: int) -> None:
        timer, items, done = self._timers[partition], self._items[partition], self._done[partition]
        if timer is not None:
            timer.cancel()
        if items:
            self._items[partition], self._sizes[partition] = [], 0
            self._done[partition] = self._loop.create_future()
            task = self._loop.create_task(self._send(partition, items, done))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _send(
        self, partition: int, items: list[tuple[int, bytes, int, bytes]], done: "asyncio.Future[None]"
    ) -> None:
        try:
            sent = await self._producer.send("events", records.encode(items), partition=partition)  # type: ignore[attr-defined]
            await sent
            done.set_result(None)
        except Exception as error:  # noqa: BLE001 - every waiting request fails with it
            done.set_exception(error)


async def main() -> None:
    """Serve until the process is killed."""
    projects: dict[str, int] = json.loads(os.environ["FLOOR_TOKENS"])
    producer, codec = records.producer(), records.given_codec()
    await producer.start()
    chunks = Chunks(producer)

    async def batch(request: web.BaseRequest) -> web.Response:
        project = projects.get(request.headers.get("Authorization", "").removeprefix("Bearer "))
        if request.method == "GET" or project is None:
            return web.Response(status=200 if request.method == "GET" else 401)
        now, body = time.time_ns() // 1_000_000, await request.read()
        inflater = isal_zlib.decompressobj(31)
        text = inflater.decompress(body, MAX_BODY + 1)
        if len(text) > MAX_BODY or not inflater.eof:
            return web.Response(status=413)
        text.decode()
        waiting = set()
        raw_events = decode_batch(text).events
        for raw in raw_events:
            event = decode_event(raw)
            number = bytes.fromhex(event.id.replace("-", ""))
            partition = crc32(b"%d/" % project + number) % records.PARTITIONS
            waiting.add(chunks.add(partition, (project, number, now, codec.compress(raw))))
        for chunk in waiting:
            await chunk
        return web.json_response({"accepted": len(raw_events)}, status=202)

    runner = web.ServerRunner(web.Server(batch, access_log=None, auto_decompress=False))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", int(os.environ["FLOOR_PORT"])).start()
    records.ready()
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main())
