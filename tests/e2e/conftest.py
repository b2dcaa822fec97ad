"""A browser, servers that a test may stop, back up and restore, and all our processes on servers that tests share."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.sync_api import Browser, sync_playwright

from bench.servers import prepare
from local.kafka.local_kafka import LocalKafka
from local.local_stack import Stack
from runtime.supervisor import Supervisor
from tests.backed_up_clickhouse import BackedUpClickHouse
from tests.e2e.browser import launch
from tests.e2e.page_server import serving
from tests.integration.notify.mail_server import MailServer
from tests.servers import CACHE, new_database, new_prefix
from tests.topics import delete_topics
from tests.webhook_receiver import SECRET, Receiver


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = launch(playwright)
        yield started
        started.close()


@pytest.fixture(scope="module")
def address(clickhouse_url: str) -> Iterator[str]:
    """The dashboard over the sample project."""
    with serving(clickhouse_url) as started:
        yield started


@pytest.fixture
def own_kafka(tmp_path: Path) -> Iterator[LocalKafka]:
    broker = LocalKafka(tmp_path / "kafka", CACHE).start(120)
    yield broker
    broker.stop()


@pytest.fixture
def own_clickhouse(tmp_path: Path) -> Iterator[BackedUpClickHouse]:
    server = BackedUpClickHouse(tmp_path / "clickhouse").start(120)
    yield server
    server.stop()


# One loop for all that use these: a supervisor belongs to the loop that started it.
@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def inboxes() -> AsyncIterator[tuple[MailServer, Receiver]]:
    """Where messages arrive: by mail, and by a webhook."""
    async with MailServer().listening() as mails, Receiver().listening() as posts:
        yield mails, posts


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def running(
    tmp_path_factory: pytest.TempPathFactory,
    kafka_bootstrap: str,
    clickhouse_url: str,
    inboxes: tuple[MailServer, Receiver],
) -> AsyncIterator[tuple[Stack, Supervisor]]:
    """All our processes on the session's servers, under a separate topic prefix and database.

    The tests share them, and each has a separate project. A test restarts the processes it kills before it goes on.
    """
    topic_prefix = new_prefix()
    mails, posts = inboxes
    channels = {
        "mail": {"apprise": f"mailto://127.0.0.1:{mails.port}?from=svc@example.com&to={{to}}"},
        "hook": {"webhook": posts.url, "secret": SECRET},
    }
    async with AsyncExitStack() as cleanup:
        stack = prepare(
            tmp_path_factory.mktemp("stack"),
            CACHE,
            SVC_KAFKA_BOOTSTRAP=kafka_bootstrap,
            SVC_CLICKHOUSE_URL=cleanup.enter_context(new_database(clickhouse_url)),
            SVC_TOPIC_PREFIX=topic_prefix,
            SVC_PROCESSORS_APP=f"{topic_prefix}processors",
            SVC_WRITER_GROUP=f"{topic_prefix}writer",
            SVC_NOTIFY_GROUP=f"{topic_prefix}notify",
            SVC_NOTIFY_CHANNELS=json.dumps(channels),
        )
        cleanup.push_async_callback(delete_topics, kafka_bootstrap, topic_prefix)
        supervisor = Supervisor(stack.children())
        cleanup.push_async_callback(supervisor.stop)
        await supervisor.start()
        yield stack, supervisor
