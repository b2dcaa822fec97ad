"""The edge as a process: its records in Kafka, start, stop, health and log."""

import asyncio
import json
import resource
import signal
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import aiohttp
import pytest

from schemas.ids import new_token
from tests.edge_events import encoded, event
from tests.eventually import eventually
from tests.integration.edge.conftest import Deployment
from tests.integration.edge.edge_process import (
    EdgeProcess,
    headers,
    log_lines,
    running,
    stored,
)


async def post(
    session: aiohttp.ClientSession,
    edge: EdgeProcess,
    body: bytes,
    sent: dict[str, str],
    path: str = "/v1/events",
) -> int:
    async with session.post(edge.url + path, data=BytesIO(body), headers=sent) as response:
        await response.read()
        return response.status


def descriptors(edge: EdgeProcess) -> int:
    """How many file descriptors it has open."""
    return len(list(Path(f"/proc/{edge.pid}/fd").iterdir()))


async def test_files_of_an_edge_are_readable_by_its_owner_only(
    deployment: Deployment, tmp_path: Path
) -> None:
    folder = tmp_path / "edge"
    folder.mkdir()
    async with running(EdgeProcess(deployment.bootstrap, deployment.prefix, tmp_path, workers=2)):
        await eventually(lambda: list(folder.rglob("projects.json")))
        written = [file for file in folder.rglob("*") if file.is_file()]
        assert {
            file.name: oct(file.stat().st_mode & 0o077) for file in written if file.stat().st_mode & 0o077
        } == {}


async def test_readyz_names_its_parts_and_fails_before_the_port_closes(
    deployment: Deployment, tmp_path: Path
) -> None:
    edge = EdgeProcess(deployment.bootstrap, deployment.prefix, tmp_path, edge_drain_seconds="1.0")
    async with running(edge), aiohttp.ClientSession() as session:
        async with session.get(edge.url + "/readyz") as response:
            assert response.status == 200
            parts = {"accepting", "projects", "delivery", "outcomes", "spool"}
            assert set((await response.json())["parts"]) == parts
        async with session.get(edge.url + "/healthz") as response:
            assert response.status == 200
        edge.signal(signal.SIGTERM)

        async def unready() -> bool:
            async with session.get(edge.url + "/readyz") as response:
                return response.status == 503

        await eventually(unready)
        assert await post(session, edge, encoded(), headers(deployment.project)) == 202
        assert await edge.wait() == 0
    assert len(await stored(deployment.bootstrap, deployment.prefix)) == 1


async def test_sigterm_under_load_loses_no_accepted_event(deployment: Deployment, tmp_path: Path) -> None:
    accepted: set[str] = set()
    stopped = False
    edge = EdgeProcess(deployment.bootstrap, deployment.prefix, tmp_path, workers=2)

    async def load(session: aiohttp.ClientSession) -> None:
        while not stopped:
            given = event()
            try:
                if await post(session, edge, json.dumps(given).encode(), headers(deployment.project)) == 202:
                    accepted.add(given["id"].replace("-", ""))
            except aiohttp.ClientError:
                await asyncio.sleep(0.01)

    async with running(edge), aiohttp.ClientSession() as session:
        clients = [asyncio.create_task(load(session)) for _ in range(8)]
        await eventually(lambda: len(accepted) > 200)
        edge.signal(signal.SIGTERM)
        assert await edge.wait() == 0
        stopped = True
        await asyncio.gather(*clients)
    found = {each.id.hex() for _, each in await stored(deployment.bootstrap, deployment.prefix)}
    assert accepted <= found
    ours = [line for line in log_lines(edge) if "kafka" not in line["logger"]]
    assert [line for line in ours if line["level"] in {"error", "critical"}] == []


@pytest.mark.holds("contract 2.13")
async def test_log_is_json_without_tokens_or_tracebacks(deployment: Deployment, tmp_path: Path) -> None:
    async with (
        running(EdgeProcess(deployment.bootstrap, deployment.prefix, tmp_path)) as edge,
        aiohttp.ClientSession() as session,
    ):
        await post(session, edge, encoded(), headers(deployment.project))
        await post(session, edge, b"\x00", headers(deployment.project))
        await post(session, edge, encoded(), headers(deployment.project), "/v1/nothing")
        await post(session, edge, encoded(), {"Authorization": f"Bearer {new_token()}"})
    lines = log_lines(edge)
    assert lines[0]["message"] == "listening"
    assert lines[0]["port"] == edge.port
    # The log of Kafka's client about a new topic is not ours.
    ours = [line for line in lines if "kafka" not in line["logger"]]
    assert [line for line in ours if line["level"] in {"warning", "error", "critical"}] == []
    assert "svc_pk_" not in edge.log
    assert "Traceback" not in edge.log


async def test_data_directory_that_cannot_be_written_is_one_line_and_exit_status_1(tmp_path: Path) -> None:
    await asyncio.to_thread((tmp_path / "edge").write_text, "a file where a folder is asked")
    edge = EdgeProcess("127.0.0.1:1", "x.", tmp_path)
    edge.start()
    assert await edge.wait() == 1
    assert "the process stops: SVC_DATA_DIR: can't write to " in edge.log
    assert edge.log.count("\n") == 1


@pytest.fixture
def most_files() -> Iterator[int]:
    """How many files this process may have open: during the test as many as it can be allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_ten_thousand_idle_connections_leave_the_edge_serving(
    deployment: Deployment, tmp_path: Path, most_files: int
) -> None:
    count = min(10_000, most_files - 500)
    assert count >= 1000, "too few descriptors for this test: raise the hard limit"
    async with (
        running(
            EdgeProcess(deployment.bootstrap, deployment.prefix, tmp_path, edge_address_connections="0")
        ) as edge,
        aiohttp.ClientSession() as session,
    ):
        writers = []
        for _ in range(count // 100):
            pairs = await asyncio.gather(
                *(asyncio.open_connection("127.0.0.1", edge.port) for _ in range(100))
            )
            writers += [writer for _, writer in pairs]
        for writer in writers[::3]:
            writer.write(b"POST /v1/events HTTP/1.1\r\nHo")
        assert await post(session, edge, encoded(), headers(deployment.project)) == 202
        for writer in writers:
            writer.transport.abort()
        for writer in writers:
            with suppress(ConnectionError):
                await writer.wait_closed()
        assert await post(session, edge, encoded(), headers(deployment.project)) == 202


async def test_edge_without_file_descriptors_lives_and_serves_once_it_has_some(
    deployment: Deployment, tmp_path: Path
) -> None:
    """Its limit falls while it runs, so its own limit of connections, made for the higher one, doesn't help it."""
    async with (
        running(
            EdgeProcess(deployment.bootstrap, deployment.prefix, tmp_path, edge_head_seconds="600")
        ) as edge,
        aiohttp.ClientSession() as session,
    ):
        assert await post(session, edge, encoded(), headers(deployment.project)) == 202
        used = descriptors(edge)
        resource.prlimit(edge.pid, resource.RLIMIT_NOFILE, (used + 20, used + 20))
        held = [await asyncio.open_connection("127.0.0.1", edge.port) for _ in range(60)]
        await eventually(lambda: descriptors(edge) >= used + 19)

        async def counted() -> bool:
            """The metrics are still updated, which looks into a folder; asked over the session's open connection."""
            page = await (await session.get(edge.url + "/metrics")).text()
            return "svc_edge_connections 2" in page

        await eventually(counted)
        for _, writer in held:
            writer.transport.abort()

        async def answers() -> bool:
            with suppress(aiohttp.ClientError):
                return await post(session, edge, encoded(), headers(deployment.project)) == 202
            return False

        await eventually(answers)
        assert "a part of the edge failed" not in edge.log
