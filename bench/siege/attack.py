"""The hostile token: a thousand connections in several forms of attack, in a separate process of the lowest priority."""

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from itertools import cycle
from multiprocessing.synchronize import Event

import uvloop
from msgspec import Struct

from bench.edge_load import answered, request
from bench.siege import bodies
from local.tether import lower_priority
from schemas.ids import new_token

PAUSE_SECONDS = 0.05
"""Between two requests of a connection: the generator must leave CPU time to the edge."""
SLOW_SECONDS = 0.5
POLL_SECONDS = 0.1
UNANSWERED = {"slow heads", "slow bodies"}
"""Forms whose requests the edge waits for."""
TAKEN = {"repairs"}
"""The form whose events are repaired and accepted."""
HELD_BYTES = 900_000
NICE = 15


class Target(Struct, frozen=True):
    """The address and the tokens; `limited` belongs to a project with a low rate limit."""

    port: int
    token: str
    limited: str


class Report(Struct):
    """Answers by form of attack: statuses, or `closed` for a connection that the edge closed."""

    answers: dict[str, Counter[str]]


Connection = Callable[[asyncio.StreamReader, asyncio.StreamWriter, Callable[[str], None]], Awaitable[None]]


def forms(target: Target) -> dict[str, Connection]:
    """The coroutine of one connection for each form."""
    own = _headers(target.token)
    zipped = own | {"Content-Encoding": "gzip"}
    return {
        "slow heads": partial(_drip, b"POST /v1/events HTTP/1.1\r\nHost: x\r\nX: ", b""),
        "slow bodies": partial(_drip, _head(own, HELD_BYTES), b" " * 20),
        "held open": partial(_drip, _head(own, HELD_BYTES) + b" " * (HELD_BYTES - 1000), b""),
        "gzip bombs": partial(_repeat, [_post(body, zipped) for body in bodies.bombs()]),
        "repairs": partial(_repeat, [_post(body, zipped) for body in bodies.repairs()]),
        "deep nesting": partial(_repeat, [_post(body, zipped) for body in bodies.nestings()]),
        "refused events": partial(_repeat, [_post(body, own) for body in bodies.refused()]),
        "past the rate limit": partial(_repeat, [_post(bodies.event(), _headers(target.limited))]),
        "wrong tokens": partial(_repeat, [_post(bodies.event(), _headers(new_token())) for _ in range(20)]),
    }


def attack(
    target: Target,
    chosen: Sequence[str],
    connections: int,
    begun: Event,
    stop: Event,
    results: Callable[[Report], object],
) -> None:
    """Attack in the chosen forms (default: all) until stopped; runs in a separate process. Sets `begun` once all are active."""
    _give_way()
    results(uvloop.run(_attack(target, chosen, connections, begun, stop)))


def is_under_way(answers: Mapping[str, Mapping[str, int]]) -> bool:
    """Whether each form has got its expected answer: a refusal, except for forms that get none soon."""
    return all(
        any(answer.isdecimal() and (answer != "202" or name in TAKEN) for answer in counts)
        for name, counts in answers.items()
        if name not in UNANSWERED
    )


def _give_way() -> None:
    """Give this process the lowest priority; a session of its own, because autogroup scheduling weighs sessions."""
    os.setsid()
    lower_priority(NICE)


async def _attack(
    target: Target, chosen: Sequence[str], connections: int, begun: Event, stop: Event
) -> Report:
    doings = {name: doing for name, doing in forms(target).items() if name in chosen or not chosen}
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


def _headers(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", "Svc-Sdk": "siege/1", "Content-Type": "application/json"}


def _post(body: bytes, headers: dict[str, str]) -> bytes:
    return request("/v1/events", body, headers)


def _head(headers: dict[str, str], length: int) -> bytes:
    return request("/v1/events", b"", headers).replace(b"Content-Length: 0", b"Content-Length: %d" % length)
