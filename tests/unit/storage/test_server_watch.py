"""The parts of readyz about servers that don't answer."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest
from prometheus_client import CollectorRegistry, Gauge

from schemas.health import Health, Part
from storage.client import answers
from storage.server_watch import watch_servers
from storage.shards import Shard
from tests.eventually import eventually
from tests.unit.local.test_readiness import answering

SHARDS = [Shard(number, 2, f"http://svc:secret@ch{number + 1}:8123/svc") for number in range(2)]


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a listener that accepts connections and never answers, as a frozen server does."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://svc:x@127.0.0.1:{server.getsockname()[1]}/svc"


def test_whatever_speaks_http_answers_and_a_frozen_server_does_not(silent: str) -> None:
    with answering(b"no such path", 404) as address:
        assert answers(f"{address}/svc", 5.0)
    assert not answers(silent, 0.05)
    assert not answers("http://svc:x@127.0.0.1:1/svc", 0.05)


async def test_a_server_is_named_after_two_failures_and_until_it_answers() -> None:
    health, waiting = Health(), Gauge("waiting", "Waits.", ["table"], registry=CollectorRegistry())
    silent_urls = set[str]()
    calls: list[str] = []

    def answer(url: str, _seconds: float) -> bool:
        calls.append(url)
        return url not in silent_urls or calls.count(url) == 2

    def value(part: str) -> float:
        return float(waiting.labels(part)._value.get())

    silent_urls.add(SHARDS[1].url)
    watching = asyncio.create_task(watch_servers(SHARDS, health, waiting, answer, 0.0))
    await eventually(lambda: "no answer since" in health.parts().get("clickhouse-2", Part(True)).detail)
    assert calls.count(SHARDS[1].url) > 3
    assert health.parts()["clickhouse-1"].ok
    assert (value("clickhouse-1"), value("clickhouse-2")) == (0, 1)
    silent_urls.clear()
    await eventually(lambda: health.ready)
    assert value("clickhouse-2") == 0
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching


def test_a_process_is_ready_while_one_of_its_servers_works() -> None:
    health = Health()
    health.tolerate({"events-1", "events-2"})
    for part in ("events-1", "events-2", "grouped"):
        health.set(part, ok=True)
    health.set("events-2", ok=False, detail="down")
    one_down = health.readiness()
    health.set("events-1", ok=False)
    both_down = health.readiness()
    health.set("events-1", ok=True)
    health.set("grouped", ok=False)
    assert (one_down.ready, one_down.parts["events-2"].ok) == (True, False)
    assert [both_down.ready, health.ready] == [False, False]
