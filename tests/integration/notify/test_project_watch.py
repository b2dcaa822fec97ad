"""The counts of projects on a real broker: what is found, what is recorded, and how a successor goes on."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import GroupAuthorizationFailedError

from broker.client import writing
from control.project_edits import create
from notify.fold import Notifications
from notify.project_watch import SETTLED_MS, ProjectWatch
from schemas.issues import Outcome, encode_json
from schemas.notifications import Cause, CauseRecord, HoursRecord, NotificationRecord
from schemas.projects import ProjectRegistry, encode_project
from schemas.settings import NotifySettings
from schemas.times import HOUR_MS, iso
from tests.eventually import eventually

NOW_HOUR = 500_000
PAST = 15 * 24
BUSY = 50


class Deployment:
    """Topics, a log in memory and a clock."""

    def __init__(self, settings: NotifySettings) -> None:
        self.settings = settings
        self.log: list[NotificationRecord] = []
        self.state = Notifications()
        self.now_ms = NOW_HOUR * HOUR_MS
        self.project = create("shop", now_ms=0)
        self.registry = ProjectRegistry()
        self.registry.apply(self.project.id.encode(), encode_project(self.project))
        self._sequence = itertools.count()

    async def append(self, records: Sequence[NotificationRecord]) -> None:
        for record in records:
            self.log.append(record)
            self.state.apply(record)

    @property
    def causes(self) -> list[Cause]:
        return [record.cause for record in self.log if isinstance(record, CauseRecord)]

    @property
    def counted(self) -> list[HoursRecord]:
        return [record for record in self.log if isinstance(record, HoursRecord)]

    async def count(self, *hours: tuple[int, int]) -> None:
        """As the grouper does: events of the project in an hour."""
        async with writing(self.settings) as producer:
            for hour, events in hours:
                one = Outcome(
                    self.project.id,
                    iso(hour * HOUR_MS),
                    "py/1",
                    "accepted",
                    "",
                    events,
                    "grouper/0",
                    next(self._sequence),
                )
                await producer.send(f"{self.settings.topic_prefix}outcomes", encode_json([one]), partition=1)

    async def past(self) -> None:
        await self.count(*((hour, BUSY) for hour in range(NOW_HOUR - PAST, NOW_HOUR)))

    def pass_hour(self) -> None:
        """So long that the hour that ends then is complete."""
        self.now_ms = (self.now_ms // HOUR_MS + 1) * HOUR_MS + SETTLED_MS

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        watch = ProjectWatch(self.settings, self.registry, self.state, self.append, lambda: self.now_ms)
        task = asyncio.create_task(watch.run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def settle(self) -> None:
        """The hour before the present one is complete."""
        self.now_ms += SETTLED_MS
        await self.complete()

    async def complete(self) -> None:
        """Wait until all before the present hour is recorded."""
        await eventually(lambda: self.state.hours.complete == self.now_ms // HOUR_MS)


@pytest.fixture
def deployment(kafka_bootstrap: str, prefix: str) -> Deployment:
    settings = NotifySettings(
        kafka_bootstrap=kafka_bootstrap, topic_prefix=prefix, processors_app=f"{prefix}processors"
    )
    return Deployment(settings)


async def test_a_rise_is_found_at_once_and_a_successor_counts_the_same_without_finding_it_again(
    deployment: Deployment,
) -> None:
    await deployment.past()
    async with deployment.watching():
        await deployment.settle()
        assert deployment.state.hours.count(deployment.project.id, NOW_HOUR - 1) == BUSY
        await deployment.count((NOW_HOUR, 150), (NOW_HOUR, 150))
        await eventually(lambda: deployment.causes)
    [cause] = deployment.causes
    assert (cause.kind, cause.project_id, cause.issue) == ("projectEscalated", deployment.project.id, "")
    assert len(deployment.counted) == 1
    async with deployment.watching():
        await deployment.count((NOW_HOUR, 700))
        deployment.pass_hour()
        await deployment.complete()
    assert deployment.causes == [cause]
    assert deployment.state.hours.count(deployment.project.id, NOW_HOUR) == 1000


async def test_a_project_that_stops_is_silent_once_hours_without_events_are_complete(
    deployment: Deployment,
) -> None:
    await deployment.past()
    async with deployment.watching():
        await deployment.settle()
        for _ in range(4):
            deployment.pass_hour()
            await deployment.complete()
        await eventually(lambda: deployment.causes)
    [cause] = deployment.causes
    assert (cause.kind, cause.value) == ("projectSilent", f"{iso(NOW_HOUR * HOUR_MS)[:16]}Z")


async def test_what_is_not_grouped_yet_is_no_silence(deployment: Deployment) -> None:
    await deployment.past()
    events = TopicPartition(f"{deployment.settings.topic_prefix}events", 0)
    async with deployment.watching():
        await deployment.settle()
        async with writing(deployment.settings) as producer:
            sent = await producer.send(events.topic, b"a chunk", partition=0)
            await sent
        for _ in range(3):
            deployment.pass_hour()
        await deployment.count((NOW_HOUR, 1))
        # The processors come late: only then is anything complete.
        group = AIOKafkaConsumer(
            bootstrap_servers=deployment.settings.kafka_bootstrap,
            group_id=deployment.settings.processors_app,
            enable_auto_commit=False,
        )
        await group.start()
        assert deployment.state.hours.complete == NOW_HOUR
        group.assign([events])
        await group.commit({events: 1})
        await group.stop()
        await deployment.complete()
    assert deployment.causes == []


async def test_without_the_right_to_look_at_the_processors_rises_are_found_and_hours_recorded(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_given: object) -> None:
        raise GroupAuthorizationFailedError(deployment.settings.processors_app)

    monkeypatch.setattr("notify.project_watch.passed", refused)
    await deployment.past()
    await deployment.count((NOW_HOUR, 1))
    async with deployment.watching():
        deployment.now_ms += SETTLED_MS
        await deployment.count((NOW_HOUR, 300))
        await eventually(lambda: deployment.causes)
        assert deployment.counted == []
        deployment.pass_hour()
        await eventually(lambda: deployment.counted)
    assert [cause.kind for cause in deployment.causes] == ["projectEscalated"]
    assert deployment.state.hours.complete == 0
    assert deployment.state.hours.count(deployment.project.id, NOW_HOUR) == 301


async def test_what_another_process_has_recorded_is_not_counted_again(deployment: Deployment) -> None:
    await deployment.count((NOW_HOUR, 7))
    async with deployment.watching():
        await deployment.settle()
        [first] = deployment.counted
        await deployment.count((NOW_HOUR, 3))
        other = HoursRecord(
            0, first.next_offsets, {1: 2}, {deployment.project.id: {NOW_HOUR: 3}}, NOW_HOUR + 1
        )
        await deployment.append([other])
        deployment.pass_hour()
        deployment.pass_hour()
        await deployment.count((NOW_HOUR + 1, 5))
        await deployment.complete()
        deployment.pass_hour()
        await deployment.complete()
    totals = [deployment.state.hours.count(deployment.project.id, NOW_HOUR + later) for later in range(2)]
    assert totals == [10, 5]
