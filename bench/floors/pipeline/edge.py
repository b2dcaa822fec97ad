"""The floor's edge: inflate, decode and compress each event, and answer 202 once Kafka has the chunks."""

import asyncio
import json
import os
import time
from collections import defaultdict
from zlib import crc32

import msgspec
import uvloop
from aiohttp import web
from isal import isal_zlib
from msgspec import Raw

from bench.floors.pipeline import records
from schemas.event import Event

MAX_BODY = 1 << 20
decode_batch = msgspec.json.Decoder(dict[str, list[Raw]]).decode
decode_event = msgspec.json.Decoder(Event).decode


async def main() -> None:
    """Serve until the process is killed."""
    projects: dict[str, int] = json.loads(os.environ["FLOOR_TOKENS"])
    producer, codec = records.producer(), records.given_codec()
    await producer.start()

    async def batch(request: web.BaseRequest) -> web.Response:
        project = projects.get(request.headers.get("Authorization", "").removeprefix("Bearer "))
        if project is None:
            return web.Response(status=401)
        now, body = time.time_ns() // 1_000_000, await request.read()
        inflater = isal_zlib.decompressobj(31)
        text = inflater.decompress(body, MAX_BODY + 1)
        if len(text) > MAX_BODY or not inflater.eof:
            return web.Response(status=413)
        text.decode()
        chunks = defaultdict[int, list[tuple[int, bytes, int, bytes]]](list)
        for raw in decode_batch(text)["events"]:
            number = bytes.fromhex(decode_event(raw).id.replace("-", ""))
            partition = crc32(b"%d/" % project + number) % records.PARTITIONS
            chunks[partition].append((project, number, now, codec.compress(raw)))
        sent = [
            await producer.send("events", records.encode(items), partition=partition)
            for partition, items in chunks.items()
        ]
        await asyncio.gather(*sent)
        return web.json_response({"accepted": sum(map(len, chunks.values()))}, status=202)

    runner = web.ServerRunner(web.Server(batch, access_log=None, auto_decompress=False))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", int(os.environ["FLOOR_PORT"])).start()
    records.ready()
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main())
