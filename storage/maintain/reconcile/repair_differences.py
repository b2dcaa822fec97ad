"""Repairs the differences of a comparison, while everything runs: `svc reconcile --repair`."""

import asyncio
from collections import Counter
from collections.abc import Set
from datetime import UTC, date, datetime

from broker.consumer_lag import ConsumerLag, passed
from schemas.settings import PipelineSettings
from schemas.topics import Topic
from storage.exactly_once.repair_rollups import repair_rollups
from storage.maintain.reconcile.duplicates import remove_duplicates
from storage.maintain.reconcile.reconcile import TWICE, Reconciliation
from storage.maintain.reconcile.resend import replay_issues, replay_records, send_missing
from storage.shards import Servers


def repair_differences(
    settings: PipelineSettings,
    servers: Servers,
    result: Reconciliation,
    broken: Set[str],
    wait: float,
) -> tuple[dict[str, int], ConsumerLag | None]:
    """Repair duplicate and missing rows, then sums, then issues; `broken` are tables with lost parts.

    Returns the repaired rows by table, and the writer's lag if it hasn't stored the resent records within
    `wait` seconds.
    """
    done = Counter[str]()
    late, are_missing = None, False
    days = {(project, date.fromisoformat(day)) for project, day in result.rollup_days}
    for table, difference in TWICE.items():
        if result.differs(difference):
            for server in servers:
                removed, changed = remove_duplicates(server.own, table)
                done[difference] += removed
                days |= changed
    # Doubles hide as many missing rows of their day.
    if done or result.differs("stored", "payloads", "issue_day"):
        sent = asyncio.run(send_missing(settings, servers, today()))
        done.update(sent)
        are_missing = bool(sent)
        if are_missing:
            late = asyncio.run(passed(settings, {settings.writer_group: [Topic.GROUPED]}, wait))
    for server in servers:
        done.update(repair_rollups(server.own, days))
    # A database restored from a backup lacks the outcomes, activity and changes of that time too, and no other check
    # finds missing activity and changes.
    for name in ("outcomes", "issue_activity", "changes"):
        is_lacking = are_missing or (name == "outcomes" and result.differs("stored"))
        if name in broken or is_lacking or result.is_incomplete(name):
            done[name] = asyncio.run(replay_records(settings, [server.own for server in servers], name))
    if (
        "issues" in broken
        or are_missing
        or result.is_incomplete("issues")
        or result.differs("issues", "events without issue")
    ):
        for server in servers:
            done["issues"] = asyncio.run(replay_issues(settings, server.own))
    return {name: rows for name, rows in done.items() if rows or name in TWICE.values()}, late


def today() -> date:
    """The last day that is compared, by UTC as in ClickHouse."""
    return datetime.now(UTC).date()
