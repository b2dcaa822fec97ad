"""The life of a worker: connect, follow the projects, start the app, watch it, stop."""

import asyncio
import gc
import logging
from contextlib import suppress
from functools import partial
from typing import Final, cast

from faust.tables.manager import TableManager
from prometheus_client import CollectorRegistry

from broker.client import TopicFollower, follow_projects, name_of, open_producer
from broker.errors import KafkaError, PartitionsLost
from broker.kafka_diagnosis import reason_of
from broker.log_end_offsets import LogEndOffsets
from broker.member_name import MemberName
from broker.rights import RequiredRights, needs
from broker.send_errors import SendErrorKind, kind_of
from broker.startup import Ask, missing_rights, wait_for_rights
from broker.waiting import pause, until
from processors.faust_app.patches import PlacedConsumer
from processors.faust_app.processors_app import Processors, ProcessorsApp
from processors.faust_app.watchdog import (
    RECOVERY_SECONDS,
    SILENCE_SECONDS,
    STALL_SECONDS,
    Stalled,
    Watchdog,
    ends_if_blocked,
)
from processors.grouper.grouper_stage import IdLookUp
from processors.processors_metrics import ProcessorsMetrics
from schemas.errors import CannotRun
from schemas.health import Health, Part
from schemas.projects import ProjectRegistry
from schemas.settings import ProcessorsSettings
from schemas.topics import AS_MANY_PARTITIONS, SAME_PARTITIONS, Topic, unequal_partitions

log = logging.getLogger(__name__)
CHECK_SECONDS: Final = 1.0
STOP_SECONDS: Final = 15.0
_FENCED: Final = "UnknownError"
"""aiokafka's name for FENCED_INSTANCE_ID, which it doesn't know: another process has the name."""
GC_THRESHOLDS: Final = (50_000, 20, 50)


async def run_processors(
    settings: ProcessorsSettings,
    stop: asyncio.Event,
    health: Health,
    registry: CollectorRegistry,
    stored_ids: IdLookUp | None = None,
    stored_rights: Ask | None = None,
) -> None:
    """Run until `stop` is set. Raises CannotRun."""
    if stored_ids is None:
        log.warning(
            "SVC_CLICKHOUSE_URL is unset: a repeated id counts as new %d days after its event",
            settings.dedupe_days,
            extra={"event": "old_ids_unchecked"},
        )
    health.set("assigned", ok=False, detail="starting")
    # Batches create tens of thousands of short-lived objects: collecting less often halves the cost.
    gc.set_threshold(*GC_THRESHOLDS)
    projects = ProjectRegistry()
    follower = follow_projects(settings, projects)
    background = [asyncio.create_task(follower.run())]
    health.probe("kafka", follower.answering)
    health.probe("projects", lambda: Part(follower.loaded.is_set(), f"{len(projects)} known"))
    required = needs(settings)["processors"]
    try:
        more = () if stored_rights is None else (stored_rights,)
        await until(stop, wait_for_rights(settings, required, *more, health=health))
        partitions = await until(stop, _partitions(settings))
        if partitions is None or await until(stop, _loaded(follower)) is None:
            return
        metrics = ProcessorsMetrics(registry)
        processors = Processors(settings, partitions, projects, metrics, stored_ids)
        health.probe("assigned", processors.recovery.assigned)
        health.probe("name", processors.name.part)
        await _work(processors, stop, required, health)
    finally:
        for task in background:
            task.cancel()
        await asyncio.wait(background)


async def _work(
    processors: Processors, stop: asyncio.Event, required: RequiredRights, health: Health
) -> None:
    app = processors.app
    await processors.producer.start()
    failure: BaseException | None = None
    refusal = ""
    try:
        app.finalize()
        failure = await until(stop, _started(app)) or await _watch(processors, stop)
        if failure is not None and kind_of(failure) is SendErrorKind.DENIED:
            refusal = await _refusal(failure, processors.settings, required)
            health.set("rights", ok=False, detail=refusal)
    finally:
        own = cast(PlacedConsumer, app.consumer).member_id
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await app.stop()
        except (TimeoutError, KafkaError, RuntimeError) as error:
            log.warning("the app did not stop cleanly: %s", error, extra={"event": "app_stop_failed"})
        await processors.producer.stop()
    if failure is not None:
        raise CannotRun(refusal or await exit_reason(failure, processors.name, own))


async def _refusal(failure: BaseException, settings: ProcessorsSettings, required: RequiredRights) -> str:
    """The rights that Kafka refuses, or the error in which it did."""
    missing: list[str] = []
    with suppress(KafkaError, OSError):
        missing = await missing_rights(settings, required)
    return f"Kafka refuses {', '.join(missing)}" if missing else reason_of(failure)


async def exit_reason(failure: BaseException, name: MemberName, own: str) -> str:
    """The worker's last message: another worker has its name, or the failure."""
    # Of two with one name, the other one takes it again now.
    is_ousted = isinstance(failure, PartitionsLost) or _FENCED in str(failure)
    return (await name.other(own) if is_ousted else "") or reason_of(failure)


async def _watch(processors: Processors, stop: asyncio.Event) -> BaseException | None:
    """Update metrics; returns the error that ended the app, or None at `stop`."""
    app, watchdog = processors.app, Watchdog()
    ends = LogEndOffsets(processors.settings, processors.next_offsets)
    fetching = asyncio.create_task(ends.run())
    looks = 0
    try:
        with ends_if_blocked(lambda: (looks, processors.grouper.decided)):
            while not stop.is_set():
                looks += 1
                if error := cast(PlacedConsumer, app.consumer).group_error:
                    return error
                if app.should_stop:
                    return app.crash_reason or RuntimeError("the app stopped by itself")
                try:
                    check_progress(processors, watchdog, ends)
                except Stalled as error:
                    return error
                await pause(stop, CHECK_SECONDS)
    finally:
        fetching.cancel()
        with suppress(asyncio.CancelledError):
            await fetching
    return None


def check_progress(processors: Processors, watchdog: Watchdog, ends: LogEndOffsets) -> None:
    """Publish the lag, and raise if nothing at all moves while records wait."""
    app, metrics = processors.app, processors.metrics
    if not processors.fence.open:
        read = dict(cast(TableManager, app.tables).recovery.active_offsets)
        watchdog.only("recovery")
        moved = read, sorted(processors.grouper.partitions)
        watchdog.check("recovery", moved, waiting=True, seconds=RECOVERY_SECONDS)
        return
    watchdog.check("recovery", None, waiting=False, seconds=RECOVERY_SECONDS)
    next_offsets, behind = processors.next_offsets(), list[str]()
    for tp, next_offset in next_offsets.items():
        # The consumer's highwater is newer while it fetches.
        end = max(ends.latest.get(tp, 0), app.consumer.highwater(tp) or 0)
        lag = max(0, end - next_offset)
        metrics.lag.labels(tp.topic, str(tp.partition)).set(lag)
        if lag:
            behind.append(f"{tp.topic}/{tp.partition}")
    # One partition may have to wait for the others, and for long where the machine is busy. A long batch makes
    # progress before its partitions do.
    progress = next_offsets, processors.grouper.decided
    watchdog.check("answers", (ends.answers, progress), waiting=True, seconds=SILENCE_SECONDS)
    # While a batch waits for ClickHouse, Faust's buffers may keep the aggregator waiting too.
    waiting = bool(behind) and not processors.grouper.looking_up
    watchdog.check("records", progress, waiting=waiting, seconds=STALL_SECONDS, waiting_for=", ".join(behind))


async def _started(app: ProcessorsApp) -> Exception | None:
    """Start, which waits for an assignment; returns a refusal of the group meanwhile."""
    starting = asyncio.create_task(app.start())
    try:
        while not (await asyncio.wait({starting}, timeout=CHECK_SECONDS))[0]:
            if error := cast(PlacedConsumer, app.consumer).group_error:
                return error
        await starting
        return None
    finally:
        starting.cancel()


async def _partitions(settings: ProcessorsSettings) -> int:
    """The number of partitions of the source. Waits for Kafka and for the topics.

    Raises CannotRun if a topic lacks a partition.
    """
    topics = [
        t
        for t in (*SAME_PARTITIONS, *AS_MANY_PARTITIONS)
        if t is not Topic.GROUPED_EVENTS or settings.grouped_events
    ]
    while True:
        try:
            async with open_producer(settings, enable_idempotence=False) as producer:
                counts = {t: len(await producer.partitions_for(name_of(settings, t)) or ()) for t in topics}
        except (KafkaError, OSError) as error:
            log.warning(
                "can't read the partitions of the source topics, retrying: %s",
                error,
                extra={"event": "partition_counts_failed"},
            )
            counts = {}
        if counts and all(counts.values()):
            if unequal := unequal_partitions(counts, partial(name_of, settings)):
                raise CannotRun(f"partitions: {unequal}; `svc doctor` says how to correct it")
            return counts[Topic.EVENTS]
        if missing := [name_of(settings, topic) for topic, count in counts.items() if not count]:
            log.warning(
                "topics missing: %s; run `svc migrate`",
                ", ".join(missing),
                extra={"event": "source_topics_missing"},
            )
        await asyncio.sleep(1.0)


async def _loaded(follower: TopicFollower) -> bool:
    return await follower.loaded.wait()
