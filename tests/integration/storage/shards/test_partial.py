"""While a server is down, answers leave out its rows and say so, where the settings allow it.

Elsewhere the answer is 503.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from storage.read.execute import Executor, Limits
from storage.read.reader import Reader
from storage.shards import WHOLE
from tests.integration.dashboard.api import Client
from tests.integration.storage.read.world import NOW_MS, World
from tests.shard_servers import ShardServer
from tests.unit.dashboard.site import ADMIN, running_site

pytestmark = pytest.mark.slow

SAYS_SO = "A ClickHouse server does not answer"


@asynccontextmanager
async def dashboard(urls: Sequence[str], world: World, *, partial: bool) -> AsyncIterator[Client]:
    executor = Executor([url + WHOLE for url in urls], Limits(), partial=partial)
    async with running_site(Reader(executor, lambda: NOW_MS), number=world.project, now_ms=NOW_MS) as site:
        await site.sign_in()
        yield site.client


async def ask(client: Client, path: str) -> tuple[int, str | None, str]:
    """Status, the header of partial answers, and the body."""
    async with client.get(path, headers=ADMIN) as answer:
        return answer.status, answer.headers.get("Svc-Partial"), await answer.text()


@pytest.mark.parametrize("number", [0, 2], ids=["entry", "other"])
async def test_a_server_is_down(
    urls: list[str], world: World, servers: list[ShardServer], number: int
) -> None:
    issues, page = f"/api/v1/projects/{world.project}/issues", f"/projects/{world.project}/issues"
    async with (
        dashboard(urls, world, partial=True) as client,
        dashboard(urls, world, partial=False) as strict,
    ):
        status, header, whole = await ask(client, issues)
        assert (status, header) == (200, None)
        servers[number].kill()
        try:
            status, header, part = await ask(client, issues)
            assert (status, header) == (200, "true")
            assert part != whole
            status, _, text = await ask(client, page)
            assert status == 200
            assert SAYS_SO in text
            assert (await ask(strict, issues))[:2] == (503, None)
        finally:
            servers[number].start(120)
        assert await ask(client, issues) == (200, None, whole)
        assert SAYS_SO not in (await ask(client, page))[2]


@pytest.mark.parametrize("number", [0, 2], ids=["entry", "other"])
async def test_a_server_is_frozen(
    urls: list[str], world: World, servers: list[ShardServer], number: int
) -> None:
    issues = f"/api/v1/projects/{world.project}/issues"
    async with dashboard(urls, world, partial=True) as client:
        status, header, whole = await ask(client, issues)
        assert (status, header) == (200, None)
        with servers[number].frozen():
            for _ in range(2):
                status, header, part = await ask(client, issues)
                assert (status, header) == (200, "true")
                assert part != whole
        assert await ask(client, issues) == (200, None, whole)
