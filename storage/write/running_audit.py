"""The writer's running audit: accepted, stored and counted events of the last day are compared every minute.

The writer of the first partition of `grouped` does it. An audit that fails or finds the pipeline behind
judges nothing.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, Literal, TypeVar

from broker.consumer_lag import passed
from broker.errors import KafkaError
from broker.rights import record_groups
from schemas.settings import WriterSettings
from schemas.topics import Topic
from storage.client import ClickHouseError, Client, open_client
from storage.maintain.audit.audit_reading import WINDOW_HOURS, AuditTables, erased_since, expiring
from storage.maintain.audit.damage import without_issue
from storage.maintain.audit.differences import (
    HOUR,
    AuditDifference,
    AuditReading,
    ConfirmedDifferences,
    find_differences,
)
from storage.shards import whole_url
from storage.write.writer_metrics import WriterMetrics

log = logging.getLogger(__name__)

T = TypeVar("T")
AuditResult = Literal["equal", "different", "behind", "failed"]
_SETTLE_SECONDS: Final = 60
"""Younger events are left for the next audit: under load, their minute still grows."""
_PASS_SECONDS: Final = 20.0
_POLL_SECONDS: Final = 1.0
_LOGGED: Final = 10


class Auditor:
    """Compares two readings, between which the pipeline passes the ends of its topics."""

    def __init__(self, settings: WriterSettings, metrics: WriterMetrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self._tables = AuditTables()
        self._confirmed = ConfirmedDifferences()
        self._orphans: set[tuple[int, int]] = set()
        """Projects and fingerprints without an issue at the last audit."""

    async def audit(self) -> AuditResult:
        """One audit; sets the metrics."""
        try:
            result = await self._compare()
        except (ClickHouseError, KafkaError, OSError) as error:
            log.warning("the audit failed: %s", error, extra={"event": "audit_failed"})
            result = "failed"
        self._metrics.audits.labels(result).inc()
        return result

    async def _compare(self) -> AuditResult:
        now = int(time.time())
        since, until = now // HOUR * HOUR - WINDOW_HOURS * HOUR, (now - _SETTLE_SECONDS) // 60 * 60
        first = await asyncio.to_thread(
            self._with_client, lambda client: self._tables.read(client, since, now)
        )
        lag = await passed(self._settings, self._groups(), _PASS_SECONDS, _POLL_SECONDS)
        if lag is not None:
            log.info(
                "skipping the audit: %s is %d records behind on %s",
                lag.group,
                lag.records,
                lag.topic,
                extra={"event": "audit_skipped"},
            )
            return "behind"

        first_day = datetime.fromtimestamp(since, UTC).date()

        def read(client: Client) -> tuple[AuditReading, set[int], set[int], set[tuple[int, int]]]:
            second, orphans = self._tables.read(client, since, now), without_issue(client, first_day)
            return second, erased_since(client, since), expiring(client, since), orphans

        second, erased, short, orphans = await asyncio.to_thread(self._with_client, read)
        lost = [project for project, _ in orphans & self._orphans if project not in erased]
        self._orphans = orphans
        self._report_lost(len(lost))
        differences = self._confirmed.confirm(find_differences(first, second, since, until, erased, short))
        self._report(differences, now, until)
        return "different" if differences else "equal"

    def _groups(self) -> dict[str, list[Topic]]:
        # In this order: records read by a group are in the next one's topic.
        records = record_groups(self._settings.writer_group, len(self._settings.shard_urls))
        return {
            self._settings.processors_app: [Topic.EVENTS],
            self._settings.writer_group: [Topic.GROUPED],
            **{group: [Topic.OUTCOMES, Topic.ISSUES] for group in records},
        }

    def _with_client(self, read: Callable[[Client], T]) -> T:
        client = open_client(whole_url(self._settings, self._settings.clickhouse_url))
        try:
            return read(client)
        finally:
            client.close()

    def _report_lost(self, issues: int) -> None:
        self._metrics.audit_lost_issues.set(issues)
        if issues:
            log.error(
                "%d fingerprints have events and no issue: run `svc reconcile --repair`",
                issues,
                extra={"event": "issues_lost"},
            )

    def _report(self, differences: list[AuditDifference], now: int, until: int) -> None:
        for kind in ("missing", "surplus"):
            for what in ("stored", "payloads", "issue_hour", "project_hour"):
                events = sum(d.events for d in differences if (d.kind, d.what) == (kind, what))
                self._metrics.audit_difference.labels(kind, what).set(events)
        self._metrics.audit_differing.set(len({(d.project, d.hour) for d in differences}))
        self._metrics.audit_at.set(now)
        self._metrics.audit_until.set(until)
        for d in sorted(differences, key=lambda d: -d.events)[:_LOGGED]:
            hour = datetime.fromtimestamp(d.hour, UTC).strftime("%Y-%m-%dT%H:00Z")
            found = f"{d.what}: {d.events} events {d.kind} in project {d.project}, hour {hour}"
            log.error("%s: run `svc reconcile`", found, extra={"event": "counts_differed"})


async def run_audit(settings: WriterSettings, metrics: WriterMetrics, leads: Callable[[], bool]) -> None:
    """Audit at the interval of the settings while this writer leads, until cancelled."""
    auditor = Auditor(settings, metrics)
    while True:
        await asyncio.sleep(settings.writer_audit_seconds)
        if leads():
            await auditor.audit()
        else:
            auditor = Auditor(settings, metrics)
            metrics.forget_audit()
