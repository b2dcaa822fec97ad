"""The dashboard over a sample project in a real database, served from a separate thread."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from aiohttp import web

from control.issue_changes import IssueChanges
from control.key_edits import NewKey, add_key, revoke_key
from control.project_edits import create
from dashboard.dashboard_app import build_app, build_runner
from dashboard.dependencies import Dependencies
from schemas.ids import new_secret_key
from schemas.issues import Subject
from schemas.notifications import (
    Cause,
    CauseKind,
    CauseRecord,
    ChannelsRecord,
    DeliveryRecord,
    NotificationRecord,
    NotificationRule,
    QuietHours,
    RulesRecord,
)
from schemas.read_api import Artifact
from schemas.settings import DashboardSettings
from schemas.times import DAY_MS, HOUR_MS, iso
from storage.artifact_store import ArtifactStore
from storage.read.reader import Reader
from storage.tables.migrations.migrate import migrate
from tests.integration.dashboard.store import AppliedCommands, Store
from tests.servers import new_database
from tests.unit.dashboard.lag import FixedLag
from tests.unit.dashboard.projects import MemoryProjects
from tests.unit.dashboard.sample import PROJECT, SHOWCASE, issue_of
from tests.unit.dashboard.site import NOWHERE

PASSWORD = "correct horse"
FULL, EMPTY = str(PROJECT), "12"
NOTIFICATION_RULES = (
    NotificationRule(
        "a" * 16,
        "new in production",
        ("created", "regressed", "escalated"),
        ("shop-chat", "pager"),
        "environment:production",
        most_per_hour=20,
    ),
    NotificationRule(
        "b" * 16,
        "digest of \u202erelease",
        ("seenInRelease",),
        ("team-mail",),
        to=("shop@example.com", "web@example.com"),
        digest_minutes=1440,
        quiet=QuietHours("19:00", "08:00", "Europe/Berlin", ("sat", "sun")),
    ),
)
SOURCE_MAP = Artifact(
    release="android \u202egnp@1.0.0+1",
    path="assets/index-BIB-3fzx.js",
    kind="sourceMap",
    debug_id="0f1e2d3c-4b5a-4697-8879-6a5b4c3d2e1f",
    digest="d",
    bytes=1_056_391,
    stored_bytes=287_681,
    uploaded_at=iso(0),
    expires_at="2099-01-01T00:00:00.000Z",
)
LAG = FixedLag()
"""The state of the pipeline on all pages."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def _parts(store: Store, *, tame: bool) -> Dependencies:
    month_ago = now_ms() - 30 * 86_400_000
    full = msgspec.structs.replace(create("storefront-web", now_ms=month_ago), id=FULL)
    empty = msgspec.structs.replace(create("android \u202egnp.exe", now_ms=month_ago + 1), id=EMPTY)
    store.fill(now_ms(), tame=tame)
    link = "https://git.example/{version}/{file}#L{line}"
    full = msgspec.structs.replace(full, notification_rules=NOTIFICATION_RULES, link_template=link)
    for name in ("old ci", "ci", "<script>alert(1)</script> " + "long" * 18):
        full = add_key(full, NewKey(name, ("read", "artifacts"), 90), new_secret_key(), "Zoë", month_ago)
    full = revoke_key(full, full.keys[0].id, now_ms())
    log = _log()

    async def since(ms: int) -> list[NotificationRecord]:
        return [record for record in log if record.at_ms >= ms]

    reader = Reader.open([store.url])
    changes = IssueChanges(reader, AppliedCommands(store), now_ms)
    artifacts = ArtifactStore([store.url])
    return Dependencies(
        reader, MemoryProjects(full, empty), now_ms, changes, since, lag=LAG, artifacts=artifacts
    )


def _log() -> list[NotificationRecord]:
    """Two causes a day for a week; of the last one a message was given up, another waits for its next attempt."""
    now = now_ms()
    records: list[NotificationRecord] = [
        ChannelsRecord(now - 8 * DAY_MS, ("pager", "shop-chat", "team-mail")),
        RulesRecord(now - 8 * DAY_MS, FULL, NOTIFICATION_RULES),
    ]
    for number in range(14):
        at_ms = now - (14 - number) * DAY_MS // 2
        kind: CauseKind = "seenInRelease" if number % 3 else "created"
        seen = Subject(environment="production", first_seen_ms=at_ms, last_seen_ms=at_ms)
        cause = Cause(f"c{number}", FULL, issue_of(SHOWCASE), kind, iso(at_ms), seen, "storefront@2.4.0+118")
        records.append(CauseRecord(at_ms, cause, 0, number))
    chat = NOTIFICATION_RULES[0]
    refused = "the channel answered 404: no such channel"
    records += [
        DeliveryRecord(now - HOUR_MS, f"{chat.id}/shop-chat/c12", attempts=9, error=refused),
        DeliveryRecord(
            now - 3000,
            f"{chat.id}/pager/c12",
            attempts=3,
            next_ms=now + 90 * 60_000,
            error="no answer within 10 s",
        ),
    ]
    return records


@contextmanager
def serving(clickhouse_url: str, *, tame: bool = False) -> Iterator[str]:
    """The address of the dashboard; its database is made on this server. `tame`: without hostile events."""
    with new_database(clickhouse_url) as url:
        migrate(url)
        store = Store(url)
        yield from _served(_parts(store, tame=tame))
        store.close()


@contextmanager
def serving_files() -> Iterator[str]:
    """The address of a dashboard without a project and a database."""
    yield from _served(Dependencies(Reader.open([NOWHERE]), MemoryProjects()))


def _served(parts: Dependencies) -> Iterator[str]:
    settings = DashboardSettings(
        admin_password=PASSWORD, kafka_bootstrap="unused:1", clickhouse_url="http://unused/svc"
    )
    loop = asyncio.new_event_loop()
    runner = build_runner(build_app(settings, parts))

    async def start() -> str:
        if parts.artifacts is not None:
            await parts.artifacts.put(int(EMPTY), SOURCE_MAP, b"unread")
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
