"""The dashboard over a sample project in a real database, served from a thread of its own."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from aiohttp import web

from control.issue_changes import IssueChanges
from control.project_edits import create
from dashboard.app import build_app, build_runner
from dashboard.dependencies import Dependencies
from schemas.issues import Subject
from schemas.notifications import (
    CAUSES,
    Cause,
    CauseRecord,
    ChannelsRecord,
    DeliveryRecord,
    NotificationRecord,
    NotificationRule,
    RulesRecord,
)
from schemas.settings import DashboardSettings
from schemas.times import iso
from storage.migrations.migrate import migrate
from storage.reader.reader import Reader
from tests.integration.dashboard.store import AppliedCommands, Store
from tests.servers import new_database
from tests.unit.dashboard.lag import FixedLag
from tests.unit.dashboard.projects import MemoryProjects
from tests.unit.dashboard.sample import PROJECT

PASSWORD = "correct horse"
FULL, EMPTY = str(PROJECT), "12"
LAG = FixedLag()
"""What all pages see of the pipeline."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


async def _since(ms: int) -> list[NotificationRecord]:
    rule = NotificationRule("a" * 16, "new in production", CAUSES, ("chat", "mail"))
    cause = Cause("1" * 16 + "-created", FULL, "1" * 16, "created", iso(ms), Subject(), "shop@1.0.0+1")
    return [
        ChannelsRecord(ms, ("chat", "mail", "pager")),
        RulesRecord(ms, FULL, (rule,)),
        CauseRecord(ms, cause, 0, 1),
        DeliveryRecord(
            ms,
            f"{rule.id}/chat/{cause.id}",
            attempts=2,
            next_ms=now_ms() + 3600_000,
            error="chat.example answered 503",
        ),
        DeliveryRecord(ms, f"{rule.id}/mail/{cause.id}", attempts=9, error="no such mailbox"),
    ]


def _parts(store: Store) -> Dependencies:
    month_ago = now_ms() - 30 * 86_400_000
    full = msgspec.structs.replace(create("storefront-web", now_ms=month_ago), id=FULL)
    empty = msgspec.structs.replace(create("android \u202egnp.exe", now_ms=month_ago + 1), id=EMPTY)
    store.fill(now_ms())
    reader = Reader.open([store.url])
    changes = IssueChanges(reader, AppliedCommands(store), now_ms)
    return Dependencies(reader, MemoryProjects(full, empty), now_ms, changes, _since, LAG)


@contextmanager
def serving(clickhouse_url: str) -> Iterator[str]:
    """The address of the dashboard; its database is made on this server."""
    with new_database(clickhouse_url) as url:
        migrate(url)
        store = Store(url)
        yield from _served(_parts(store))
        store.close()


def _served(parts: Dependencies) -> Iterator[str]:
    settings = DashboardSettings(
        admin_password=PASSWORD, kafka_bootstrap="unused:1", clickhouse_url="http://unused/svc"
    )
    loop = asyncio.new_event_loop()
    runner = build_runner(build_app(settings, parts))

    async def start() -> str:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}"

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield asyncio.run_coroutine_threadsafe(start(), loop).result(30)
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(30)
        asyncio.run_coroutine_threadsafe(parts.reader.close(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
