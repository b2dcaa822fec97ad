"""The dashboard over a sample project in memory, served from a thread of its own."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from aiohttp import web

from control.project_edits import create
from dashboard.app import build_app, build_runner
from dashboard.dependencies import Dependencies
from schemas.settings import DashboardSettings
from tests.memory import MemoryChanges, MemoryProjects, MemoryReader
from tests.unit.dashboard.sample import fill

PASSWORD = "correct horse"
FULL, EMPTY = "11", "12"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def _parts() -> Dependencies:
    month_ago = now_ms() - 30 * 86_400_000
    full = msgspec.structs.replace(create("storefront-web", now_ms=month_ago), id=FULL)
    empty = msgspec.structs.replace(create("android \u202egnp.exe", now_ms=month_ago + 1), id=EMPTY)
    reader = MemoryReader(now_ms)
    fill(reader, int(FULL), now_ms())
    return Dependencies(reader, MemoryProjects(full, empty), now_ms, MemoryChanges(reader))


@contextmanager
def serving() -> Iterator[str]:
    """The address of the dashboard."""
    settings = DashboardSettings(
        admin_password=PASSWORD, kafka_bootstrap="unused:1", clickhouse_url="http://unused/svc"
    )
    loop = asyncio.new_event_loop()
    runner = build_runner(build_app(settings, _parts()))

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
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
