"""Two dashboards follow one topic: what one does with a key, the other knows."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from control.project_store import ProjectStore
from dashboard.dashboard_app import build_app
from dashboard.dependencies import Dependencies
from schemas.settings import KafkaSettings
from schemas.topics import Topic
from storage.read.reader import Reader
from tests.eventually import eventually
from tests.topics import create_topics
from tests.unit.dashboard.site import ADMIN, NOWHERE, SETTINGS

KEYS = "/api/v1/api-keys"
Client = TestClient[web.Request, web.Application]


@pytest.fixture
async def dashboards(kafka_bootstrap: str, topic_prefix: str) -> AsyncIterator[list[Client]]:
    await create_topics(kafka_bootstrap, topic_prefix, 1, (Topic.PROJECTS, Topic.ISSUE_ACTIVITY))
    settings = KafkaSettings(kafka_bootstrap=kafka_bootstrap, topic_prefix=topic_prefix)
    async with AsyncExitStack() as stack:
        clients = []
        for _ in range(2):
            reader, projects = Reader.open([NOWHERE]), await stack.enter_async_context(ProjectStore(settings))
            stack.push_async_callback(reader.close)
            server = TestServer(build_app(SETTINGS, Dependencies(reader, projects)))
            clients.append(await stack.enter_async_context(TestClient(server)))
        yield clients


async def test_a_revoked_key_ends_on_every_dashboard(dashboards: list[Client]) -> None:
    here, there = dashboards
    made = await here.post(KEYS, json={"name": "ci", "scopes": ["admin"]}, headers=ADMIN)
    answer = await made.json()
    program, [key] = {"Authorization": f"Bearer {answer['secret']}"}, answer["keys"]

    async def answer_of(client: Client, path: str) -> tuple[int, Any]:
        answer = await client.get(path, headers=program)
        return answer.status, await answer.json()

    async def is_known() -> bool:
        return await answer_of(there, "/api/v1/projects") == (200, {"projects": []})

    async def is_noted() -> bool:
        return (await answer_of(here, KEYS))[1]["keys"][0]["lastUsed"] is not None

    async def is_refused() -> bool:
        return (await answer_of(there, "/api/v1/projects"))[0] == 401

    await eventually(is_known)
    await eventually(is_noted)
    assert (await here.delete(f"{KEYS}/{key['id']}", headers=ADMIN)).status == 200
    assert (await answer_of(here, "/api/v1/projects"))[0] == 401
    await eventually(is_refused)
