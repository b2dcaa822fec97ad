"""Several workers on one port: one limit, one sum of metrics, and a dead one is replaced."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest

from edge.edge_supervisor import remove_stale_metrics
from tests.edge_events import encoded, event
from tests.eventually import eventually
from tests.integration.edge.conftest import Deployment
from tests.integration.edge.edge_process import (
    EdgeProcess,
    headers,
    log_lines,
    running,
    stored,
    write_project,
)
from tests.trap_folder import TrapFolder


def workers_of(edge: EdgeProcess) -> list[int]:
    """Process ids of the workers: the supervisor's children that serve."""
    children = Path(f"/proc/{edge.pid}/task/{edge.pid}/children").read_text(encoding="ascii").split()
    found = []
    for child in map(int, children):
        with suppress(OSError):
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(child)
    return found


async def post_alone(edge: EdgeProcess, body: bytes, sent: dict[str, str]) -> int:
    """On a new connection, so that the system gives it to any worker."""
    async with (
        aiohttp.ClientSession() as session,
        session.post(edge.url + "/v1/events", data=body, headers=sent) as response,
    ):
        await response.read()
        return response.status


@pytest.mark.holds("contract 2.11")
async def test_rate_limit_is_exact_over_all_workers(deployment: Deployment, tmp_path: Path) -> None:
    project = await write_project(deployment.bootstrap, deployment.prefix, rate_limit_per_minute=50)
    async with running(EdgeProcess(deployment.bootstrap, deployment.prefix, tmp_path, workers=3)) as edge:
        statuses: list[int] = []
        for _ in range(6):
            statuses += await asyncio.gather(
                *(post_alone(edge, encoded(), headers(project)) for _ in range(20))
            )
        assert statuses.count(202) == 50
        assert statuses.count(429) == 70


async def test_killed_worker_is_replaced_and_its_counts_stay(deployment: Deployment, tmp_path: Path) -> None:
    accepted: set[str] = set()
    statuses: set[int] = set()
    edge = EdgeProcess(deployment.bootstrap, deployment.prefix, tmp_path, workers=2)
    async with running(edge):
        await eventually(lambda: len(workers_of(edge)) == 2)
        running_load = True

        async def load() -> None:
            while running_load:
                given = event()
                with suppress(aiohttp.ClientError):
                    status = await post_alone(edge, json.dumps(given).encode(), headers(deployment.project))
                    statuses.add(status)
                    if status == 202:
                        accepted.add(given["id"].replace("-", ""))

        clients = [asyncio.create_task(load()) for _ in range(4)]
        await eventually(lambda: len(accepted) > 100)
        # The successor has no snapshot to tell tokens by until it has read the topic.
        (tmp_path / "edge" / "projects.json").unlink()
        victim = workers_of(edge)[0]
        os.kill(victim, signal.SIGKILL)
        await eventually(lambda: len(workers_of(edge)) == 2 and victim not in workers_of(edge))
        seen = len(accepted)
        await eventually(lambda: len(accepted) > seen + 100)
        running_load = False
        await asyncio.gather(*clients)
        # The successor takes nothing before it knows the projects and Kafka.
        assert statuses == {202}
        async with aiohttp.ClientSession() as session, session.get(edge.url + "/metrics") as response:
            page = await response.text()
        (count,) = re.findall(r'svc_edge_events_total\{outcome="accepted".*\} ([0-9.]+)', page)
        assert float(count) >= len(accepted)
    assert any(line["message"] == "worker died, replacing it" for line in log_lines(edge))
    assert accepted <= {each.id.hex() for _, each in await stored(deployment.bootstrap, deployment.prefix)}


async def test_workers_end_with_a_killed_supervisor(deployment: Deployment, tmp_path: Path) -> None:
    edge = EdgeProcess(deployment.bootstrap, deployment.prefix, tmp_path, workers=2)
    async with running(edge):
        await eventually(lambda: len(workers_of(edge)) == 2)
        workers = workers_of(edge)
        edge.kill()
        await eventually(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers), 60)
    # As the next edge on this folder does.
    remove_stale_metrics(tmp_path / "edge" / "metrics")


async def test_neither_it_nor_its_workers_import_code_from_the_current_folder(
    deployment: Deployment, tmp_path: Path
) -> None:
    edge = EdgeProcess(deployment.bootstrap, deployment.prefix, tmp_path)
    trap = TrapFolder(tmp_path / "folder")
    command = [str(Path(sys.executable).with_name("svc")), "edge", "--workers", "2"]
    with edge.log_path.open("ab") as log:
        process = subprocess.Popen(command, cwd=trap.path, env=edge.environ, stdout=log, stderr=log)  # noqa: ASYNC220
    try:
        await eventually(lambda: trap.read() or edge.log.count('"listening"') == 2)
        assert process.poll() is None, edge.log
    finally:
        process.terminate()
        process.wait()
    assert not trap.read()
