"""`svc dashboard` as a separate process, with real servers and without them."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import aiohttp
import pytest
from aiohttp import encode_basic_auth

from broker.topics import ensure_topics
from control.project_store import ProjectStore
from local.ports import free_port
from schemas.environment import load
from schemas.settings import DashboardSettings
from storage.tables.migrations.migrate import migrate
from tests.eventually import eventually

PASSWORD = "correct horse"
ADMIN = {"Authorization": encode_basic_auth("admin", PASSWORD)}
COMMAND = [sys.executable, "-P", "-m", "cli.dashboard"]


@contextmanager
def dashboard(environ: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        COMMAND, env=_clean() | environ, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("SVC_")}


@pytest.fixture
def environ(kafka_bootstrap: str, clickhouse_database_url: str, topic_prefix: str) -> dict[str, str]:
    return {
        "SVC_KAFKA_BOOTSTRAP": kafka_bootstrap,
        "SVC_CLICKHOUSE_URL": clickhouse_database_url,
        "SVC_TOPIC_PREFIX": topic_prefix,
        "SVC_ADMIN_PASSWORD": PASSWORD,
        "SVC_DASHBOARD_PORT": str(free_port()),
    }


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


def address(environ: dict[str, str]) -> str:
    return f"http://127.0.0.1:{environ['SVC_DASHBOARD_PORT']}"


async def status(client: aiohttp.ClientSession, url: str) -> int:
    try:
        async with client.get(url) as answer:
            return answer.status
    except aiohttp.ClientError:
        return 0


@pytest.mark.holds("contract 4")
async def test_it_is_ready_with_real_servers_and_creates_projects_that_others_see(
    environ: dict[str, str], client: aiohttp.ClientSession
) -> None:
    settings = load(DashboardSettings, environ)
    await ensure_topics(settings)
    migrate(environ["SVC_CLICKHOUSE_URL"])
    with dashboard(environ) as process:

        async def is_ready() -> bool:
            return await status(client, f"{address(environ)}/readyz") == 200

        await eventually(is_ready)
        async with client.get(f"{address(environ)}/readyz") as answer:
            body = await answer.json()
        assert {name: part["ok"] for name, part in body["parts"].items()} == {
            "projects": True,
            "clickhouse": True,
        }
        async with client.post(
            f"{address(environ)}/api/v1/projects", json={"name": "shop"}, headers=ADMIN
        ) as answer:
            assert answer.status == 201
            project = await answer.json()
        async with ProjectStore(settings) as store:
            assert [known.id for known in store.all()] == [project["id"]]
        for path in (
            f"/projects/{project['id']}/issues",
            f"/projects/{project['id']}/releases",
            f"/projects/{project['id']}/outcomes",
            f"/projects/{project['id']}/tags",
        ):
            async with client.get(f"{address(environ)}/api/v1{path}", headers=ADMIN) as answer:
                assert answer.status == 200, path
        async with client.get(f"{address(environ)}/metrics") as answer:
            assert "svc_dashboard_requests_total" in await answer.text()
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=120)
        assert process.returncode == 0
        assert "Traceback" not in log


async def test_without_its_servers_it_is_alive_and_names_the_missing_ones(
    client: aiohttp.ClientSession,
) -> None:
    environ = {
        "SVC_KAFKA_BOOTSTRAP": f"127.0.0.1:{free_port()}",
        "SVC_CLICKHOUSE_URL": f"http://svc:svc@127.0.0.1:{free_port()}/svc",
        "SVC_ADMIN_PASSWORD": PASSWORD,
        "SVC_DASHBOARD_PORT": str(free_port()),
    }
    with dashboard(environ) as process:

        async def parts() -> dict[str, dict[str, object]]:
            try:
                async with client.get(f"{address(environ)}/readyz") as answer:
                    assert answer.status == 503
                    found: dict[str, dict[str, object]] = (await answer.json())["parts"]
                    return found if "clickhouse" in found else {}
            except aiohttp.ClientError:
                return {}

        found = await eventually(parts)
        assert [found[name]["ok"] for name in ("projects", "clickhouse")] == [False, False]
        assert await status(client, f"{address(environ)}/healthz") == 200
        async with client.get(f"{address(environ)}/api/v1/projects", headers=ADMIN) as answer:
            assert (answer.status, (await answer.json())["error"]) == (503, "internal")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
        assert process.returncode == 0
