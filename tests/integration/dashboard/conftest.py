import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from urllib.parse import urlsplit

import msgspec
import pytest
from aiohttp.test_utils import TestClient, TestServer

from control.project_edits import create
from dashboard.app import build_app
from dashboard.dependencies import Dependencies
from storage.client import open_client
from storage.migrations.migrate import migrate
from storage.reader.execute import Executor, Limits
from storage.reader.reader import Reader, ReadPort
from tests.contract.dashboard.both import Both, Client
from tests.contract.dashboard.worlds import NOW_MS, History, fill_clickhouse, fill_memory
from tests.memory import MemoryProjects
from tests.servers import run_sql
from tests.unit.dashboard.site import SETTINGS


@pytest.fixture(scope="module")
def history() -> History:
    return History(secrets.randbelow(1 << 30) + 1)


@pytest.fixture(scope="module")
def filled_url(clickhouse_url: str, history: History) -> Iterator[str]:
    name = f"test_{secrets.token_hex(6)}"
    url = urlsplit(clickhouse_url)._replace(path=f"/{name}").geturl()
    migrate(url)
    client = open_client(url)
    fill_clickhouse(history, client)
    client.close()
    yield url
    run_sql(clickhouse_url, f"DROP DATABASE {name} SYNC")


@pytest.fixture
async def both(filled_url: str, history: History) -> AsyncIterator[Both]:
    reader = Reader(Executor(filled_url, Limits()), lambda: NOW_MS)
    async with AsyncExitStack() as stack:
        fake, real = [await _client(stack, one, history) for one in (fill_memory(history), reader)]
        yield Both(fake, real, history)
    await reader.close()


async def _client(stack: AsyncExitStack, reader: ReadPort, history: History) -> Client:
    project = msgspec.structs.replace(create("shop", now_ms=NOW_MS), id=str(history.project))
    app = build_app(SETTINGS, Dependencies(reader, MemoryProjects(project), lambda: NOW_MS))
    client: Client = await stack.enter_async_context(TestClient(TestServer(app)))
    return client
