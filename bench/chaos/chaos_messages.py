"""Notifications in a run: rules of its projects, and the messages that must have arrived at the end."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence, Set
from contextlib import asynccontextmanager
from typing import Final

from msgspec.structs import replace
from rich.console import Console

from bench.chaos.proof import Store
from bench.report import Claim
from control.project_store import ProjectStore
from notify.history import NotificationHistory
from notify.matching import chooses
from schemas.change_records import Author
from schemas.notifications import CAUSES, Cause, CauseRecord, DeliveryRecord, NotificationRule
from schemas.settings import KafkaSettings
from tests.webhook_receiver import SECRET, Receiver

RULE: Final = NotificationRule("c" * 16, "everything", CAUSES, ("hook",), most_per_hour=0)
_BAD: Final = 0.05
"""Share of the requests that the receiver refuses, answers late or not at all."""
_STALLED_SECONDS: Final = 90.0
"""Longer than the first four attempts take; one that is planned for later is waited for."""


class Inbox:
    """The receiver of all messages of a run."""

    def __init__(self) -> None:
        self._receiver = Receiver(_BAD)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[dict[str, str]]:
        """The settings by which messages come here."""
        async with self._receiver.listening():
            channels = {"hook": {"webhook": self._receiver.url, "secret": SECRET}}
            yield {"SVC_NOTIFY_CHANNELS": json.dumps(channels), "SVC_NOTIFY_SECONDS": "2"}

    async def claims(self, settings: KafkaSettings, store: Store, console: Console) -> list[Claim]:
        """Every cause is in the log and was sent under one id. Waits until all have arrived, or no more arrive."""
        self._receiver.bad = 0.0
        happened = {
            name
            for name, kind in store.rows("SELECT id, kind FROM issue_activity FINAL WHERE by = 'system'")
            if kind in CAUSES
        }
        causes, wanted = await self._settled(NotificationHistory(settings), happened, console)
        received = self._receiver.causes
        kinds = Counter(cause.kind for cause in causes.values())
        requests = sum(self._receiver.requests.values())
        console.print(f"{len(received)} causes arrived in {requests} requests; in the log: {dict(kinds)}")
        return [
            Claim("causes that happened = causes in the log", len(happened), len(happened & causes.keys())),
            Claim(
                "causes that a rule chooses = causes that arrived", len(wanted), len(wanted & received.keys())
            ),
            Claim("causes that arrived and no rule chooses", 0, len(received.keys() - wanted)),
            Claim("causes that arrived under two ids", 0, sum(count > 1 for count in received.values())),
        ]

    async def _settled(
        self, history: NotificationHistory, happened: Set[str], console: Console
    ) -> tuple[dict[str, Cause], set[str]]:
        """The causes in the log, and those that the rule chooses."""
        progress, moved_at = (-1, -1), time.time()
        while True:
            records = await history.since(0)
            causes = {record.cause.id: record.cause for record in records if isinstance(record, CauseRecord)}
            attempts = {record.message: record for record in records if isinstance(record, DeliveryRecord)}
            wanted = {name for name, cause in causes.items() if chooses(RULE, cause)}
            arrived = self._receiver.causes.keys()
            if (now := (len(causes), len(arrived))) != progress:
                progress, moved_at = now, time.time()
            if happened <= causes.keys() and wanted <= arrived:
                return causes, wanted
            next_at = max((attempt.next_ms / 1000 for attempt in attempts.values()), default=0.0)
            if time.time() > max(moved_at, next_at) + _STALLED_SECONDS:
                for name in wanted - arrived:
                    tried = [attempt for attempt in attempts.values() if attempt.message.endswith(name)]
                    console.print(f"  missing: {causes[name]}, tried: {tried}")
                return causes, wanted
            await asyncio.sleep(1)


async def set_rules(settings: KafkaSettings, projects: Sequence[str]) -> None:
    """Give the projects the rule. Raises ProjectsUnavailable."""
    async with ProjectStore(settings) as store:
        for project in projects:
            author = Author("chaos", "command")
            await store.edit(int(project), lambda known: replace(known, notification_rules=(RULE,)), author)
