"""Repairs what a comparison has found, while everything runs: `svc reconcile --repair`."""

import asyncio
from collections.abc import Set
from datetime import UTC, date, datetime

from broker.consumer_lag import ConsumerLag, passed
from schemas.settings import WriterSettings
from schemas.topics import Topic
from storage.client import Client
from storage.repair.duplicates import remove_duplicates
from storage.repair.reconcile import TWICE, Reconciliation
from storage.repair.replay import replay_issues, replay_records, send_missing
from storage.writer.repair_rollups import repair_rollups


def repair_differences(
    settings: WriterSettings,
    client: Client,
    result: Reconciliation,
    broken: Set[str],
    wait: float,
) -> tuple[dict[str, int], ConsumerLag | None]:
    """Repair duplicate and missing rows, then sums, then issues; `broken` are tables with lost parts.

    Returns the repaired rows by table, and the writer's lag if it hasn't stored what it was sent within `wait` seconds.
    """
    done: dict[str, int] = {}
    late = None
    days = {(project, date.fromisoformat(day)) for project, day in result.rollup_days}
    for table, difference in TWICE.items():
        if result.differs(difference):
            done[difference], changed = remove_duplicates(client, table)
            days |= changed
    # Doubles hide as many missing rows of their day.
    if done or result.differs("stored", "payloads", "issue_day"):
        sent = asyncio.run(send_missing(settings, client, today()))
        done |= sent
        if sent:
            late = asyncio.run(passed(settings, {settings.writer_group: [Topic.GROUPED]}, wait))
    done |= {table: rows for table, rows in repair_rollups(client, days).items() if rows}
    for name in ("outcomes", "issue_activity"):
        if name in broken or (name == "outcomes" and result.differs("stored")):
            done[name] = asyncio.run(replay_records(settings, client, name))
    if "issues" in broken or result.differs("issues", "events without issue"):
        done["issues"] = asyncio.run(replay_issues(settings, client))
    return done, late


def today() -> date:
    """The last day that is compared, by UTC as in ClickHouse."""
    return datetime.now(UTC).date()
