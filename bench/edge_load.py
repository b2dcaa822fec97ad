"""Load for an HTTP server on this machine: ready-made requests over kept or fresh connections, closed or open loop.

Runs in a separate process, so that its CPU isn't counted as the server's.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Final

import uvloop
from msgspec import Struct

_ANSWER_END: Final = b"\r\n\r\n"


class LoadResult(Struct, frozen=True):
    """A run's duration in seconds, answers by status, and delays in seconds (open loop: from the scheduled time)."""

    seconds: float
    statuses: dict[int, int]
    delays: list[float]

    @property
    def answers(self) -> int:
        """The number of answers."""
        return sum(self.statuses.values())


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which such a share of all are."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def request(path: str, body: bytes, headers: dict[str, str]) -> bytes:
    """A complete POST request."""
    head = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}"]
    head += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(head) + "\r\n\r\n").encode() + body


class LoadPlan(Struct, frozen=True):
    """How to send: for `seconds` over `connections`, at `rate` requests a second or (0) as answers come.

    With `fresh` each request has a new connection.
    """

    seconds: float
    connections: int
    rate: float = 0.0
    fresh: bool = False


def run_load(port: int, requests: Sequence[bytes], plan: LoadPlan) -> LoadResult:
    """Send ready-made requests in turn."""
    return uvloop.run(_load(port, requests, plan))


async def _load(port: int, requests: Sequence[bytes], plan: LoadPlan) -> LoadResult:
    statuses: dict[int, int] = {}
    delays: list[float] = []
    scheduler = iter(range(1 << 62))
    seconds, rate = plan.seconds, plan.rate
    # SDKs keep connections open for long: opening them isn't timed, but for fresh ones.
    opened = [await _connect(port) for _ in range(plan.connections)]
    started = time.perf_counter()
    end = started + seconds

    async def drive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            turn = next(scheduler)
            due = started + turn / rate if rate else time.perf_counter()
            if due >= end or time.perf_counter() >= end + seconds:
                break
            wait = due - time.perf_counter()
            if wait > 0:
                await asyncio.sleep(wait)
            if plan.fresh:
                writer.close()
                reader, writer = await _connect(port)
            writer.write(requests[turn % len(requests)])
            status = await answered(reader)
            statuses[status] = statuses.get(status, 0) + 1
            delays.append(time.perf_counter() - due)
        writer.close()

    await asyncio.gather(*(drive(*each) for each in opened))
    return LoadResult(time.perf_counter() - started, statuses, delays)


async def _connect(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)


async def answered(reader: asyncio.StreamReader) -> int:
    """The status of the next answer; its body is dropped. Raises IncompleteReadError at the end."""
    head = await reader.readuntil(_ANSWER_END)
    start = head.find(b"Content-Length: ")
    length = int(head[start + 16 : head.index(b"\r\n", start)]) if start >= 0 else 0
    if length:
        await reader.readexactly(length)
    return int(head[9:12])
