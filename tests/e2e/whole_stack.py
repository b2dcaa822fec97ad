"""All our processes as a test sees them: its project, and a client of the read API."""

import json
from typing import Any

import aiohttp

from cli.demo.demo_command import edge_knows
from cli.projects import CreatedProject, create_project
from local.local_stack import Stack
from schemas.environment import load
from schemas.settings import MigrateSettings
from tests.eventually import eventually

SDK = "e2e/1"


async def project_of(stack: Stack) -> CreatedProject:
    """A new project, once the edge and the dashboard know it."""
    made = await create_project(load(MigrateSettings, stack.environ), "whole way")

    async def dashboard_knows() -> bool:
        async with session_of(stack) as session:
            answer = await session.get(f"/api/v1/projects/{made.id}/notification-rules")
            return answer.status == 200

    await eventually(lambda: edge_knows(stack, made))
    await eventually(dashboard_knows)
    return made


def session_of(stack: Stack) -> aiohttp.ClientSession:
    """Reads and changes as the admin."""
    headers = {"Authorization": aiohttp.encode_basic_auth("admin", stack.dashboard.admin_password)}
    return aiohttp.ClientSession(stack.dashboard_url, headers=headers)


def encoded(events: list[dict[str, Any]]) -> list[bytes]:
    """Each as JSON."""
    return [json.dumps(event, ensure_ascii=False).encode() for event in events]
