"""The work of the process that leads.

It writes causes, rules and time to the log, and sends the messages that the log decides.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from broker.client import name_of, open_consumer, records_before
from broker.types import Consumer, Producer, Record, TopicPartition
from notify.channels import Channel
from notify.message_sender import MessageSender, Write
from notify.notification_fold import Notifications
from notify.notify_metrics import NotifyMetrics
from schemas.change_records import is_change
from schemas.health import Health
from schemas.issues import decode_activity
from schemas.notifications import (
    Cause,
    CauseRecord,
    DeliveryRecord,
    NotificationRecord,
    PositionRecord,
    TimeRecord,
    cause_of,
    decode_notification,
    encode_notification,
)
from schemas.projects import ProjectRegistry
from schemas.settings import NotifySettings
from schemas.topics import Topic

log = logging.getLogger(__name__)

_READ_MS: Final = 200
_POSITION_SECONDS: Final = 30.0
"""How often the position is recorded while no activity is a cause."""
_RULES_SECONDS: Final = 60.0
"""How often it is looked whether rules and channels have to be written again."""
_LOOK_SECONDS: Final = 0.2
"""How often the clock, the rules and the outgoing messages are looked at."""


class LogLeader:
    """One term of leadership. `lead` ends by cancellation or with an error of Kafka."""

    def __init__(
        self,
        settings: NotifySettings,
        registry: ProjectRegistry,
        consumer: Consumer,
        producer: Producer,
        channels: Mapping[str, Channel],
        write: Write,
        health: Health,
        metrics: NotifyMetrics,
        now_ms: Callable[[], int],
        begin_ms: int,
    ) -> None:
        self._settings = settings
        self._registry = registry
        self._consumer = consumer
        self._producer = producer
        self._channels = tuple(sorted(channels))
        self._sender = MessageSender(channels, write, self._report, now_ms, settings.notify_seconds, metrics)
        self._now_ms = now_ms
        self._begin_ms = begin_ms
        self._health = health
        self._metrics = metrics
        self._partition = TopicPartition(name_of(settings, Topic.NOTIFICATIONS), 0)
        self._state = Notifications()
        self._applied = -1
        self._leads = False
        self._has_applied = asyncio.Condition()

    async def lead(self) -> None:
        """Read the log to its end, then lead. Raises KafkaError and OSError, in a group."""
        await self._consumer.seek_to_beginning(self._partition)
        ends = await self._consumer.end_offsets([self._partition])
        async for record in records_before(self._consumer, ends):
            self._apply(record.offset, record.value)
        self._leads = True
        log.info(
            "became leader at offset %d of %s",
            self._applied + 1,
            self._partition.topic,
            extra={"event": "leader_elected"},
        )
        try:
            async with (
                open_consumer(self._settings, Topic.ISSUE_ACTIVITY) as activities,
                asyncio.TaskGroup() as tasks,
            ):
                tasks.create_task(self._follow())
                tasks.create_task(self._read(activities))
                tasks.create_task(self._look())
        finally:
            self._metrics.outgoing.set(0)
            await self._sender.stop()

    async def _report(self, record: DeliveryRecord) -> None:
        """Record the outcome of an attempt."""
        await self._append([record])

    async def _follow(self) -> None:
        while True:
            batches = await self._consumer.getmany(self._partition, timeout_ms=_READ_MS)
            for records in batches.values():
                for record in records:
                    self._apply(record.offset, record.value)
            async with self._has_applied:
                self._has_applied.notify_all()
            self._sender.send_due(self._state.outgoing)

    def _apply(self, offset: int, value: bytes | None) -> None:
        self._applied = offset
        try:
            record = decode_notification(value or b"")
        except msgspec.MsgspecError as error:
            log.warning(
                "skipping an unreadable notification at offset %d of %s: %s",
                offset,
                self._partition.topic,
                error,
                extra={"event": "notification_skipped"},
            )
            return
        decisions = self._state.apply_record(record)
        if self._leads:
            self._metrics.decisions.inc(len(decisions))
        if isinstance(record, DeliveryRecord):
            self._sender.forget(record.message)
        self._metrics.outgoing.set(len(self._state.outgoing))

    async def _seek(self, activities: Consumer) -> None:
        """Seek to the log's positions; a new deployment begins with the activities after the start of its process."""
        positions = self._state.next_offsets
        assigned = sorted(activities.assignment())
        if not positions:
            ends = await activities.end_offsets(assigned)
            since = await activities.offsets_for_times(dict.fromkeys(assigned, self._begin_ms))
            positions = {tp.partition: since[tp].offset if since[tp] else ends[tp] for tp in assigned}
            await self._append([PositionRecord(self._now_ms(), positions)])
        for tp in assigned:
            activities.seek(tp, positions.get(tp.partition, 0))
        self._health.set("log", ok=True)

    async def _read(self, activities: Consumer) -> None:
        await self._seek(activities)
        passed: dict[int, int] = {}
        recorded_at = time.monotonic()
        while True:
            causes: list[NotificationRecord] = []
            for tp, records in (await activities.getmany(timeout_ms=_READ_MS)).items():
                causes += [
                    CauseRecord(self._now_ms(), cause, tp.partition, record.offset)
                    for record in records
                    if (cause := _cause(record)) is not None
                ]
                passed[tp.partition] = records[-1].offset + 1
            self._metrics.causes.inc(len(causes))
            if passed and (causes or time.monotonic() - recorded_at > _POSITION_SECONDS):
                await self._append([*causes, PositionRecord(self._now_ms(), passed)])
                passed, recorded_at = {}, time.monotonic()

    async def _look(self) -> None:
        version, checked_at = -1, 0.0
        while True:
            if self._registry.version != version or time.monotonic() - checked_at > _RULES_SECONDS:
                version, checked_at = self._registry.version, time.monotonic()
                rules = {project.id: project.notification_rules for project in self._registry}
                await self._append(self._state.missing(rules, self._channels, self._now_ms()))
            due = self._state.due_ms
            if due is not None and due <= self._now_ms():
                await self._append([TimeRecord(self._now_ms())])
            self._sender.send_due(self._state.outgoing)
            await asyncio.sleep(_LOOK_SECONDS)

    async def _append(self, records: Sequence[NotificationRecord]) -> None:
        """Append records in order; returns once they are applied. Raises KafkaError."""
        if not records:
            return
        topic, partition = self._partition
        sent = [
            await self._producer.send(topic, encode_notification(record), partition=partition)
            for record in records
        ]
        for acknowledged in sent:
            last = await acknowledged
        async with self._has_applied:
            await self._has_applied.wait_for(lambda: self._applied >= last.offset)


def _cause(record: Record) -> Cause | None:
    try:
        value = record.value or b""
        return None if is_change(value) else cause_of(decode_activity(value))
    except msgspec.MsgspecError as error:
        log.warning(
            "skipping an unreadable activity at offset %d of %s/%d: %s",
            record.offset,
            record.topic,
            record.partition,
            error,
            extra={"event": "activity_skipped"},
        )
        return None
