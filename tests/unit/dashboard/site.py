"""A dashboard that runs in the test's own loop; its projects are kept in memory."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from aiohttp import encode_basic_auth, web
from aiohttp.test_utils import TestClient, TestServer

from broker.errors import KafkaTimeoutError
from control.issue_changes import IssueChanges
from control.project_edits import create
from dashboard.dashboard_app import build_app
from dashboard.dependencies import Dependencies
from schemas.notifications import NotificationRecord
from schemas.projects import Project
from schemas.settings import DashboardSettings
from storage.artifact_store import ArtifactStore
from storage.read.reader import Reader
from tests.unit.dashboard.lag import FixedLag
from tests.unit.dashboard.projects import MemoryProjects

PASSWORD = "correct horse"
NOW = 1_760_000_000_000
SETTINGS = DashboardSettings(admin_password=PASSWORD, kafka_bootstrap="x:1", clickhouse_url="http://x/y")
NOWHERE = "http://svc:none@127.0.0.1:1/svc"


def basic(user: str, password: str) -> dict[str, str]:
    """The header of HTTP Basic."""
    return {"Authorization": encode_basic_auth(user, password)}


ADMIN = basic("admin", PASSWORD)


@dataclass
class Site:
    """A running dashboard with its parts in reach."""

    client: TestClient[web.Request, web.Application]
    projects: MemoryProjects
    project: Project
    log: list[NotificationRecord]
    """The topic `notifications`."""
    lag: FixedLag = field(default_factory=FixedLag, kw_only=True)

    async def sign_in(self) -> None:
        """Open a session; the client keeps its cookie."""
        answer = await self.client.post("/sign-in", data={"password": PASSWORD}, allow_redirects=False)
        assert answer.status == 303

    async def csrf(self) -> str:
        """The token that every form of the session carries."""
        page = await (await self.client.get("/projects/new")).text()
        found = re.search(r'name="csrf" value="([^"]+)"', page)
        assert found is not None
        return found[1]

    async def api(self, method: str, path: str, **given: Any) -> tuple[int, Any]:
        """Status and body of a call with the password."""
        headers = ADMIN | given.pop("headers", {})
        answer = await self.client.request(method, f"/api/v1{path}", headers=headers, **given)
        return answer.status, await answer.json()


@asynccontextmanager
async def running_site(
    reader: Reader | None = None,
    changes: IssueChanges | None = None,
    number: int = 7_000_001,
    settings: DashboardSettings = SETTINGS,
    now_ms: int = NOW,
    has_log: bool = True,
    artifacts: ArtifactStore | None = None,
) -> AsyncIterator[Site]:
    """A dashboard with one project.

    Without a reader, its database does not exist. Without a log, Kafka doesn't answer it.
    """
    project = msgspec.structs.replace(create("shop", now_ms=now_ms), id=str(number))
    projects, reader, lag = MemoryProjects(project), reader or Reader.open([NOWHERE]), FixedLag()
    log: list[NotificationRecord] = []

    async def since(ms: int) -> list[NotificationRecord]:
        if not has_log:
            raise KafkaTimeoutError
        return [record for record in log if record.at_ms >= ms]

    async def append(record: NotificationRecord) -> None:
        if not has_log:
            raise KafkaTimeoutError
        log.append(record)

    dependencies = Dependencies(reader, projects, lambda: now_ms, changes, since, lag, append, artifacts)
    app = build_app(settings, dependencies)
    async with TestClient(TestServer(app)) as client:
        yield Site(client, projects, project, log, lag=lag)
    await reader.close()
