"""The hostile tokens: connections in several forms of attack, in a separate process of the lowest priority."""

import asyncio
import os
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import cycle
from multiprocessing.synchronize import Event
from pathlib import Path

import uvloop
from msgspec import Struct

from bench.edge_load import answered, request
from bench.servers import headers
from bench.siege import bodies
from schemas.ids import new_token

PAUSE_SECONDS = 0.05
"""Between two requests of a connection: the generator must leave CPU time to the edge."""
SLOW_SECONDS = 0.5
POLL_SECONDS = 0.1
UNANSWERED = {"slow heads", "slow bodies", "declared bodies"}
"""Forms whose requests the edge waits for."""
CLOSED = {"half heads", "endless heads"}
"""Forms that the edge closes, perhaps before their answer is read."""
TAKEN = {"repairs", "near duplicates"}
"""Forms whose events are accepted."""
HELD_BYTES = 900_000
ENDLESS_BYTES = 1_000_000
HALVES = 40
"""Further connections of each one with half heads, from another address: beyond its limit."""
HALVES_ADDRESS = "127.0.0.3"
NICE = 15


class Target(Struct, frozen=True):
    """The address and the tokens.

    `limited` belongs to a project with a low rate limit, `flooding` to one with the usual limit, `declaring` to
    eight others.
    """

    port: int
    token: str
    limited: str
    flooding: str
    declaring: tuple[str, ...]


class Report(Struct):
    """Answers by form of attack: statuses, or `closed` for a connection that the edge closed."""

    answers: dict[str, Counter[str]]


_HALF = b"POST /v1/events HTTP/1.1\r\nHost: x\r\nX: "
Connection = Callable[[asyncio.StreamReader, asyncio.StreamWriter, Callable[[str], None]], Awaitable[None]]


def attacks(target: Target) -> dict[str, Connection]:
    """The coroutine of one connection for each form."""
    own = headers(target.token)
    zipped = own | {"Content-Encoding": "gzip"}
    declared = cycle([_head(headers(token), 1_000_000) for token in target.declaring])
    return {
        "slow heads": partial(_drip, _HALF, b""),
        "half heads": partial(_halves, target.port),
        "endless heads": _endless,
        "declared bodies": lambda *each: _drip(next(declared), b" " * 600, *each),
        "slow bodies": partial(_drip, _head(own, HELD_BYTES), b" " * 20),
        "held open": partial(_drip, _head(own, HELD_BYTES) + b" " * (HELD_BYTES - 1000), b""),
        "gzip bombs": partial(_repeat, [_post(body, zipped) for body in bodies.bombs()]),
        "repairs": partial(_repeat, [_post(body, zipped) for body in bodies.repairs()]),
        "deep nesting": partial(_repeat, [_post(body, zipped) for body in bodies.nestings()]),
        "refused events": partial(_repeat, [_post(body, own) for body in bodies.refused()]),
        "past the rate limit": partial(_repeat, [_post(bodies.event(), headers(target.limited))]),
        "near duplicates": partial(_flood, headers(target.flooding)),
        "wrong tokens": partial(_repeat, [_post(bodies.event(), headers(new_token())) for _ in range(20)]),
    }


def attack_names() -> list[str]:
    """The forms of attack."""
    return list(attacks(Target(0, "", "", "", ("",))))


def attack(
    target: Target,
    chosen: Sequence[str],
    connections: int,
    begun: Event,
    stop: Event,
    results: Callable[[Report], object],
) -> None:
    """Attack in the chosen forms (default: all) until stopped. Sets `begun` once all are active."""
    _give_way()
    results(uvloop.run(_attack(target, chosen, connections, begun, stop)))


def is_under_way(answers: Mapping[str, Mapping[str, int]]) -> bool:
    """Whether each form that gets an answer soon has got the expected one: a refusal, or a closed connection."""
    return all(
        any(answer.isdecimal() and (answer != "202" or name in TAKEN) for answer in counts)
        or (name in CLOSED and counts.get("closed", 0) > 0)
        for name, counts in answers.items()
        if name not in UNANSWERED
    )


def _give_way() -> None:
    """Give this process the lowest priority, and its new session too: autogroup scheduling weighs sessions."""
    os.setsid()
    os.nice(NICE)
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(NICE), encoding="ascii")


async def _attack(
    target: Target, chosen: Sequence[str], connections: int, begun: Event, stop: Event
) -> Report:
    doings = {name: doing for name, doing in attacks(target).items() if name in chosen or not chosen}
    report = Report({name: Counter() for name in doings})
    going = [
        asyncio.create_task(_keep(target.port, doings[name], report.answers[name]))
        for name, _ in zip(cycle(doings), range(connections), strict=False)
    ]
    while not stop.is_set():
        if is_under_way(report.answers):
            begun.set()
        await asyncio.sleep(POLL_SECONDS)
    for task in going:
        task.cancel()
    await asyncio.gather(*going, return_exceptions=True)
    return report


async def _keep(port: int, doing: Connection, answers: Counter[str]) -> None:
    """Reconnect whenever the connection ends."""

    def count(answer: str) -> None:
        answers[answer] += 1

    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            count("not connected")
            await asyncio.sleep(SLOW_SECONDS)
            continue
        try:
            await doing(reader, writer, count)
        except (OSError, asyncio.IncompleteReadError):
            count("closed")
        finally:
            writer.transport.abort()
        await asyncio.sleep(SLOW_SECONDS)


async def _repeat(
    requests: Sequence[bytes],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    count: Callable[[str], None],
) -> None:
    for each in cycle(requests):
        writer.write(each)
        count(str(await answered(reader)))
        await asyncio.sleep(PAUSE_SECONDS)


async def _flood(
    flooding: dict[str, str],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    count: Callable[[str], None],
) -> None:
    """Open an issue with each event, each much like all others."""
    while True:
        writer.write(_post(bodies.near_duplicate(random.randrange(1 << 32)), flooding))
        count(str(await answered(reader)))
        await asyncio.sleep(PAUSE_SECONDS)


async def _drip(
    start: bytes,
    drop: bytes,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    count: Callable[[str], None],
) -> None:
    """Send the start, then a byte now and then, or nothing, until the edge answers."""
    writer.write(start)
    answer = asyncio.create_task(answered(reader))
    try:
        while not answer.done():
            writer.write(drop or b"x" if start.endswith(b"X: ") else drop)
            await asyncio.wait([answer], timeout=SLOW_SECONDS)
        count(str(await answer))
    finally:
        answer.cancel()


async def _endless(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, count: Callable[[str], None]
) -> None:
    """A head of one line that doesn't end."""
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"y" * ENDLESS_BYTES)
    count(str(await answered(reader)))


async def _halves(
    port: int, _reader: asyncio.StreamReader, _writer: asyncio.StreamWriter, count: Callable[[str], None]
) -> None:
    """Hold many halves of heads until the edge has closed them."""
    # One after the other: this measures the edge, not how it takes thousands in one moment.
    await asyncio.gather(*(_half(port, count, SLOW_SECONDS * n / HALVES) for n in range(HALVES)))


async def _half(port: int, count: Callable[[str], None], pause: float) -> None:
    await asyncio.sleep(pause)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(HALVES_ADDRESS, 0))
    try:
        writer.write(_HALF)
        with suppress(OSError):
            await reader.read()
        count("closed")
    finally:
        writer.transport.abort()


def _post(body: bytes, headers: dict[str, str]) -> bytes:
    return request("/v1/events", body, headers)


def _head(headers: dict[str, str], length: int) -> bytes:
    return request("/v1/events", b"", headers).replace(b"Content-Length: 0", b"Content-Length: %d" % length)
