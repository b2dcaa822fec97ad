"""The process of `svc notify`: causes in, messages out, all in the order of the topic `notifications`.

For each record (the words are those of `docs/glossary.md`, "Stages"):

1. *In*: activities from the next offset on, changed rules, the clock, outcomes of attempts.
2. *Append* them to `notifications`, the only output.
3. *Read* `notifications`, including the records just appended, and fold it (`Notifications.apply_record`): only the
   fold decides on messages.
4. *Send* the outgoing messages.

Nothing is kept elsewhere. A process that starts reads the log from its beginning and continues where it ends.
Of several processes, the one that has the log's partition in the group leads, and the others wait. One that
was replaced and doesn't know it yet appends and sends the same as its successor, under the same ids: it reads
the same log.

A crash between 1 and 2 loses nothing: positions are in the log. Between 2 and 4 the message is still
outgoing. After a send and before its record, the message is sent again, under the same id.
"""

import asyncio
import logging
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

import aiohttp

from broker.client import TopicFollower, follow_projects, name_of, new_consumer, open_producer
from broker.commit import leave
from broker.errors import KafkaError
from broker.rights import RequiredRights, needs
from broker.send_errors import SendErrorKind, kind_of
from broker.startup import wait_for_rights
from broker.types import Consumer, RebalanceListener, TopicPartition
from broker.waiting import pause, until
from notify.channels import Channel, channel_settings, open_channels
from notify.describer import Describer, clock_ms
from notify.issue_tail import IssueTail
from notify.log_leader import LogLeader
from notify.message_sender import Write
from notify.notify_metrics import NotifyMetrics
from schemas.health import Health
from schemas.projects import ProjectRegistry
from schemas.settings import NotifySettings, PipelineSettings
from schemas.topics import Topic
from sourcemaps.resolver import Resolver
from storage.read.reader import Reader
from storage.shards import reader_urls

log = logging.getLogger(__name__)

_RESTART_SECONDS: Final = 0.5
_LOOK_SECONDS: Final = 1.0
_POLL_INTERVAL_MS: Final = 24 * 3600 * 1000


class Leadership(RebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    """Knows whether this process has the log's partition, once it has `joined` the group."""

    def __init__(self) -> None:
        self.joined, self.gained, self.lost = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self.joined.set()
        if assigned:
            self.lost.clear()
            self.gained.set()

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        if revoked:
            self.gained.clear()
            self.lost.set()


def first_of(failed: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error of a group, through all nested groups."""
    first = failed.exceptions[0]
    return first_of(first) if isinstance(first, BaseExceptionGroup) else first


class Notifier:
    """Leads whenever it has the log's partition."""

    def __init__(
        self,
        settings: NotifySettings,
        registry: ProjectRegistry,
        channels: Mapping[str, Channel],
        write: Write,
        health: Health,
        metrics: NotifyMetrics,
        now_ms: Callable[[], int] = clock_ms,
    ) -> None:
        self._settings = settings
        self._registry = registry
        self._channels = channels
        self._write = write
        self._health = health
        self._metrics = metrics
        self._now_ms = now_ms
        self._begin_ms = now_ms()
        self._need = rights_needed(settings)

    async def lead_or_wait(self) -> None:
        """Lead or wait until cancelled, through all errors of Kafka."""
        while True:
            refused = False
            self._health.set("log", ok=False, detail="joining the group")
            consumer = new_consumer(
                self._settings, group_id=self._settings.notify_group, max_poll_interval_ms=_POLL_INTERVAL_MS
            )
            try:
                await consumer.start()
                await self._take_part(consumer)
            except* (KafkaError, OSError) as failed:
                error = first_of(failed)
                refused = kind_of(error) is SendErrorKind.DENIED
                self._health.set("log", ok=False, detail=f"Kafka: {error}")
                log.warning("restarting after error: %s", error, extra={"event": "notify_restarted"})
            finally:
                with suppress(KafkaError, OSError):
                    await leave(consumer)
            if refused:
                await wait_for_rights(self._settings, self._need)
            await asyncio.sleep(_RESTART_SECONDS)

    async def _take_part(self, consumer: Consumer) -> None:
        """Lead while the group lets it. Raises KafkaError and OSError."""
        leadership = Leadership()
        consumer.subscribe([name_of(self._settings, Topic.NOTIFICATIONS)], listener=leadership)
        while not leadership.joined.is_set():
            consumer._coordinator.check_errors()
            await pause(leadership.joined, _LOOK_SECONDS)
        while True:
            if not leadership.gained.is_set():
                self._health.set("log", ok=True, detail="another process leads")
            while not leadership.gained.is_set():
                # A read would raise the error that ended the membership, but nothing is read meanwhile.
                consumer._coordinator.check_errors()
                await pause(leadership.gained, _LOOK_SECONDS)
            self._health.set("log", ok=False, detail="reading the log")
            async with open_producer(self._settings, linger_ms=0) as producer:
                leader = LogLeader(
                    self._settings,
                    self._registry,
                    consumer,
                    producer,
                    self._channels,
                    self._write,
                    self._health,
                    self._metrics,
                    self._now_ms,
                    self._begin_ms,
                )
                await until(leadership.lost, leader.lead())


def rights_needed(settings: NotifySettings) -> RequiredRights:
    """The permissions that the process needs on Kafka."""
    return needs(PipelineSettings(), settings.notify_group)["notify"]


async def run_notify(settings: NotifySettings, health: Health, metrics: NotifyMetrics) -> None:
    """Notify until SIGTERM or SIGINT. Raises CannotRun."""
    health.set("registry", ok=False, detail="reading the projects")
    registry = ProjectRegistry()
    follower = follow_projects(settings, registry)
    tail = IssueTail()
    issues = TopicFollower(settings, Topic.ISSUES, tail.apply, tail=True)
    health.probe("kafka", follower.answering)
    required = rights_needed(settings)
    urls = reader_urls(settings)
    reader = Reader.open(urls) if urls else None
    resolver = Resolver(reader) if reader is not None else None
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    try:
        await until(stopping, wait_for_rights(settings, required, health=health))
        if stopping.is_set():
            return
        async with (
            aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http,
            asyncio.TaskGroup() as tasks,
        ):
            following = tasks.create_task(follower.run())
            reading = tasks.create_task(issues.run())
            await until(stopping, follower.loaded.wait())
            health.set("registry", ok=True)
            await until(stopping, issues.loaded.wait())
            channels = open_channels(channel_settings(settings.notify_channels), http)
            describer = Describer(tail, reader, registry, settings.dashboard_url, resolver=resolver)
            notifying = tasks.create_task(
                Notifier(settings, registry, channels, describer.write, health, metrics).lead_or_wait()
            )
            await stopping.wait()
            for task in (notifying, reading, following):
                task.cancel()
    finally:
        if resolver is not None:
            await resolver.close()
        if reader is not None:
            await reader.close()
