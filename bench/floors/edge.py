"""The floors of the edge: the minimum cost of each part of its work on this machine."""

import asyncio
import gzip
import time
from collections.abc import Callable, Sequence

import uvloop
from aiohttp import web
from aiokafka import AIOKafkaProducer

from edge.http.inflate import inflate
from edge.validation.fast_path import slice_events
from edge.validation.validate import STRICT, checked_text, open_batch, validate
from schemas.chunks import encode_chunk
from schemas.topics import MAX_RECORD_BYTES

BATCH = 100


def batches(events: Sequence[bytes]) -> list[bytes]:
    """Gzip bodies of `BATCH` events each, at the SDKs' compression level."""
    whole = [events[i : i + BATCH] for i in range(0, len(events) - BATCH + 1, BATCH)]
    return [gzip.compress(b'{"events":[' + b",".join(each) + b"]}", 6) for each in whole]


def inflate_cost(bodies: Sequence[bytes]) -> float:
    """CPU microseconds per event for inflating batches."""
    return _cost(lambda: [inflate(body) for body in bodies], len(bodies) * BATCH)


def decode_cost(bodies: Sequence[bytes]) -> float:
    """CPU microseconds per event for decoding and validating batches."""
    plain = [inflate(body) for body in bodies]

    def work() -> None:
        for body in plain:
            pieces = slice_events(body)
            if pieces is None or STRICT.fast.valid_events(pieces) is None:
                for raw in open_batch(checked_text(body)):
                    validate(raw, STRICT)

    return _cost(work, len(bodies) * BATCH)


def produce_cost(bootstrap: str, topic: str, events: Sequence[bytes], rounds: int = 5) -> float:
    """CPU microseconds per event for compressing and writing chunks of `BATCH`, acknowledged by all replicas."""

    async def work() -> float:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            acks="all",
            enable_idempotence=True,
            max_batch_size=1024 * 1024,
            max_request_size=MAX_RECORD_BYTES,
        )
        await producer.start()
        started, count = time.process_time(), 0
        for _ in range(rounds):
            sent = []
            for first in range(0, len(events) - BATCH + 1, BATCH):
                chunk = [(1, b"0" * 16, 0, "bench/1", event) for event in events[first : first + BATCH]]
                sent.append(await producer.send(topic, encode_chunk(chunk)))
                count += BATCH
            await asyncio.gather(*sent)
        spent = time.process_time() - started
        await producer.stop()
        return spent / count * 1e6

    return uvloop.run(work())


def serve_trivially(port: int) -> None:
    """Run a server whose handler only reads the body and answers 202: the minimum cost of a request."""

    async def handle(request: web.BaseRequest) -> web.Response:
        await request.read()
        return web.Response(status=202, body=b"{}")

    async def main() -> None:
        runner = web.ServerRunner(web.Server(handle, access_log=None, auto_decompress=False))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        await asyncio.Event().wait()

    uvloop.run(main())


def _cost(work: Callable[[], object], events: int) -> float:
    best = float("inf")
    for _ in range(3):
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    return best / events * 1e6
