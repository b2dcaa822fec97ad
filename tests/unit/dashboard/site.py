"""A dashboard that runs in the test's own loop, with parts in memory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import encode_basic_auth, web
from aiohttp.test_utils import TestClient, TestServer

from control.project_edits import create
from dashboard.app import build_app
from dashboard.dependencies import Dependencies
from schemas.projects import Project
from schemas.settings import DashboardSettings
from tests.memory import MemoryChanges, MemoryProjects, MemoryReader

PASSWORD = "correct horse"
NOW = 1_760_000_000_000
SETTINGS = DashboardSettings(admin_password=PASSWORD, kafka_bootstrap="x:1", clickhouse_url="http://x/y")


def basic(user: str, password: str) -> dict[str, str]:
    """The header of HTTP Basic."""
    return {"Authorization": encode_basic_auth(user, password)}


ADMIN = basic("admin", PASSWORD)


@dataclass
class Site:
    """A running dashboard with its parts in reach."""

    client: TestClient[web.Request, web.Application]
    projects: MemoryProjects
    reader: MemoryReader
    project: Project
    changes: MemoryChanges

    async def sign_in(self) -> None:
        """Open a session; the client keeps its cookie."""
        answer = await self.client.post("/sign-in", data={"password": PASSWORD}, allow_redirects=False)
        assert answer.status == 303

    async def api(self, method: str, path: str, **given: Any) -> tuple[int, Any]:
        """Status and body of a call with the password."""
        headers = ADMIN | given.pop("headers", {})
        answer = await self.client.request(method, f"/api/v1{path}", headers=headers, **given)
        return answer.status, await answer.json()


@asynccontextmanager
async def running_site(reader: Any = None, settings: DashboardSettings = SETTINGS) -> AsyncIterator[Site]:
    """A dashboard with one project, over a reader in memory or another one."""
    project = create("shop", now_ms=NOW)
    projects, events = MemoryProjects(project), reader or MemoryReader(lambda: NOW)
    changes = MemoryChanges(events)
    app = build_app(settings, Dependencies(events, projects, lambda: NOW, changes))
    async with TestClient(TestServer(app)) as client:
        yield Site(client, projects, events, project, changes)
