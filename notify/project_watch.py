"""Counts what projects send, by the topic `outcomes`, for the log, and finds the causes in these counts.

It writes causes to the log immediately, and counts after each hour. Until then the counts are `pending`, and
a successor counts them again.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from broker.client import reading
from broker.consumer_lag import passed
from broker.errors import KafkaError
from broker.types import Consumer, Record, TopicPartition
from notify.fold import Notifications
from processors.aggregator.escalation import worth_judging
from schemas.issues import Outcome, decode_outcomes
from schemas.notifications import Cause, CauseRecord, HoursRecord, NotificationRecord
from schemas.projects import ProjectRegistry
from schemas.settings import NotifySettings
from schemas.times import HOUR_MS, parse_iso
from schemas.topics import Topic

log = logging.getLogger(__name__)

SETTLED_MS: Final = 30_000
"""What arrived in an hour is on Kafka so long after its end, unless an edge keeps it in its spool."""
MAX_PENDING: Final = 5000
"""Counts in one record: while a long past is read it would be too large."""
_READ_MS: Final = 500
_GROUPED_SECONDS: Final = 3.0
_AGAIN_SECONDS: Final = 5.0
_LOOK_AGAIN_SECONDS: Final = 10.0
"""Until it is asked again whether the processors have come so far."""

Append = Callable[[Sequence[NotificationRecord]], Awaitable[None]]


class PendingCounts:
    """Accepted events by project and Unix hour of receipt; what is published again is not counted again."""

    def __init__(self) -> None:
        self.hours: dict[str, dict[int, int]] = {}
        self._newest: dict[tuple[str, str], int] = {}

    def add(self, outcomes: Iterable[Outcome]) -> Counter[tuple[str, int]]:
        """Count the accepted events of a record; returns what was added by project and hour."""
        added: Counter[tuple[str, int]] = Counter()
        newest: dict[tuple[str, str], int] = {}
        for one in outcomes:
            source = one.project_id, one.source
            if one.outcome != "accepted" or one.sequence <= self._newest.get(source, -1):
                continue
            newest[source] = max(one.sequence, newest.get(source, -1))
            added[one.project_id, parse_iso(one.minute) // HOUR_MS] += one.count
        self._newest |= newest
        for (project, hour), count in added.items():
            hours = self.hours.setdefault(project, {})
            hours[hour] = hours.get(hour, 0) + count
        return added

    @property
    def size(self) -> int:
        return sum(map(len, self.hours.values()))


class ProjectWatch:
    """Reads `outcomes` from where the log says. `append` returns once the records are folded into `state`."""

    def __init__(
        self,
        settings: NotifySettings,
        registry: ProjectRegistry,
        state: Notifications,
        append: Append,
        now_ms: Callable[[], int],
    ) -> None:
        self._settings = settings
        self._registry = registry
        self._state = state
        self._append = append
        self._now_ms = now_ms
        self._pending = PendingCounts()
        self._first: dict[int, int] = {}
        self._positions: dict[int, int] = {}
        self._ends: dict[TopicPartition, int] | None = None
        self._hour = 0
        self._look_at = 0.0
        self._recorded_ms = 0

    async def run(self) -> None:
        """Count until cancelled, whatever Kafka does: messages about issues don't depend on it."""
        while True:
            try:
                async with reading(self._settings, Topic.OUTCOMES) as consumer:
                    while True:
                        await self._begin(consumer)
                        await self._count(consumer)
            except (KafkaError, OSError) as error:
                log.warning("projects are not counted: %s", error)
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _begin(self, consumer: Consumer) -> None:
        self._pending, self._ends = PendingCounts(), None
        self._first = dict(self._state.hours.next_offsets)
        self._positions = dict(self._first)
        self._recorded_ms = self._now_ms()
        for tp in consumer.assignment():
            if tp.partition in self._positions:
                consumer.seek(tp, self._positions[tp.partition])
            else:
                await consumer.seek_to_beginning(tp)

    async def _count(self, consumer: Consumer) -> None:
        """Count until another process, which leads or led, has recorded the same."""
        while True:
            for tp, records in (await consumer.getmany(timeout_ms=_READ_MS)).items():
                added: Counter[tuple[str, int]] = Counter()
                for record in records:
                    added += self._pending.add(_outcomes(record))
                self._positions[tp.partition] = records[-1].offset + 1
                await self._report(self._rises(added))
            is_complete = await self._is_complete(consumer)
            is_old = self._now_ms() - self._recorded_ms >= HOUR_MS
            if not is_complete and not is_old and self._pending.size < MAX_PENDING:
                continue
            complete = self._hour if is_complete else self._state.hours.complete
            if not await self._record(complete):
                return
            if is_complete:
                found = [self._state.hours.silence(project.id, {}) for project in self._registry]
                await self._report(one for one in found if one is not None)

    async def _is_complete(self, consumer: Consumer) -> bool:
        """Whether all that arrived before the present hour is counted: grouped, and read."""
        if self._ends is None:
            now = self._now_ms()
            hour = now // HOUR_MS
            is_settled = hour > self._state.hours.complete and now - hour * HOUR_MS >= SETTLED_MS
            if not is_settled or time.monotonic() < self._look_at:
                return False
            if not await self._is_grouped():
                self._look_at = time.monotonic() + _LOOK_AGAIN_SECONDS
                return False
            self._hour, self._ends = hour, await consumer.end_offsets(list(consumer.assignment()))
        return all([await consumer.position(tp) >= end for tp, end in self._ends.items()])

    async def _is_grouped(self) -> bool:
        """Whether the processors have grouped all that has arrived; False where that can't be known."""
        try:
            groups = {self._settings.processors_app: [Topic.EVENTS]}
            return await passed(self._settings, groups, _GROUPED_SECONDS) is None
        except KafkaError as error:
            log.warning("whether projects are silent is unknown: %s", error)
            return False

    async def _record(self, complete: int) -> bool:
        """Write what is pending into the log. False if another process has done so."""
        positions = dict(self._positions)
        await self._append(
            [HoursRecord(self._now_ms(), self._first, positions, self._pending.hours, complete)]
        )
        self._first, self._pending.hours, self._ends = positions, {}, None
        self._recorded_ms = self._now_ms()
        return self._state.hours.next_offsets == positions

    def _rises(self, added: Mapping[tuple[str, int], int]) -> Iterable[Cause]:
        present = self._now_ms() // HOUR_MS
        for (project, hour), count in added.items():
            pending = self._pending.hours[project]
            total = self._state.hours.count(project, hour) + pending[hour]
            if hour in (present, present - 1) and worth_judging(total - count, total):
                cause = self._state.hours.rise(project, hour, pending)
                if cause is not None:
                    yield cause

    async def _report(self, causes: Iterable[Cause]) -> None:
        now = self._now_ms()
        await self._append([CauseRecord(now, cause) for cause in causes if not self._state.knows(cause)])


def _outcomes(record: Record) -> list[Outcome]:
    try:
        return decode_outcomes(record.value or b"")
    except msgspec.MsgspecError as error:
        log.warning(
            "record %d of %s/%d is left out: %s", record.offset, record.topic, record.partition, error
        )
        return []
