"""What a running process says about a lost right."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest
from prometheus_client import CollectorRegistry

from broker.rights import needs, standstill
from broker.rights_watch import RightsWatch
from schemas.health import Health, Part
from schemas.settings import KafkaSettings
from tests.eventually import eventually

READ, WRITE, SELECT = "Read on topic svc.grouped", "Write on topic svc.outcomes", "SELECT ON svc.*"


class Server:
    """Refuses `missing`, doesn't tell, or is frozen. `checks` counts the questions."""

    def __init__(self) -> None:
        self.missing: Sequence[str] = ()
        self.silent = self.frozen = False
        self.checks = 0

    async def __call__(self) -> Sequence[str]:
        self.checks += 1
        if self.frozen:
            await asyncio.Event().wait()
        if self.silent:
            raise OSError("nobody is there")
        return self.missing


class World:
    """A watch over two servers, and a clock that tests set."""

    def __init__(self) -> None:
        self.kafka, self.clickhouse = Server(), Server()
        self.health, self.registry, self.now = Health(), CollectorRegistry(), 0.0
        self.watch = RightsWatch(
            [self.kafka, self.clickhouse], self.health, self.registry, {READ}, 0.001, lambda: self.now
        )

    @property
    def part(self) -> Part:
        return self.health.parts()["rights"]

    def metric(self, right: str) -> float | None:
        return self.registry.get_sample_value("svc_missing_rights", {"right": right})

    async def until(self, condition: Callable[[], bool]) -> None:
        """Watch until the condition is true."""
        watching = asyncio.create_task(self.watch.run())
        try:
            await eventually(condition, 3)
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching

    async def checked(self) -> None:
        """Watch until both have been asked again and the answers are reported."""
        kafka, clickhouse = self.kafka.checks, self.clickhouse.checks
        await self.until(lambda: self.kafka.checks >= kafka + 2 and self.clickhouse.checks >= clickhouse + 2)


async def test_each_missing_right_is_named_by_readiness_and_by_the_metric_until_it_is_back() -> None:
    world = World()
    world.kafka.missing, world.clickhouse.missing = [WRITE], [SELECT]
    await world.checked()
    assert world.part.ok
    assert f"{WRITE}, {SELECT}" in world.part.detail
    assert (world.metric(WRITE), world.metric(SELECT)) == (1, 1)
    world.kafka.missing = world.clickhouse.missing = []
    await world.checked()
    assert world.part == Part(ok=True)
    assert (world.metric(WRITE), world.metric(SELECT)) == (0, 0)


async def test_process_that_stands_still_without_a_right_is_not_ready() -> None:
    world = World()
    world.kafka.missing = [READ, WRITE]
    await world.checked()
    assert not world.part.ok


async def test_server_that_does_not_tell_changes_nothing() -> None:
    world = World()
    world.kafka.missing = [READ]
    await world.checked()
    world.kafka.silent = True
    await world.checked()
    assert READ in world.part.detail


async def test_missing_right_is_logged_at_once_then_once_a_minute_and_its_return_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    world.kafka.missing = [READ]
    with caplog.at_level(logging.INFO, "broker.rights_watch"):
        await world.checked()
        await world.checked()
        assert [READ in line for line in caplog.messages] == [True]
        world.now = 60.0
        await world.checked()
        assert [READ in line for line in caplog.messages] == [True, True]
        world.kafka.missing = []
        await world.checked()
        await world.checked()
    assert caplog.messages[2:] == ["all rights are granted again"]


async def test_missing_rights_that_change_are_logged_no_more_than_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    with caplog.at_level(logging.INFO, "broker.rights_watch"):
        for missing in ([READ], [READ, WRITE], [WRITE], [READ]):
            world.kafka.missing = missing
            await world.checked()
        assert [READ in line for line in caplog.messages] == [True]
        world.kafka.missing = [WRITE]
        world.now = 60.0
        await world.checked()
    assert [WRITE in line for line in caplog.messages] == [False, True]


async def test_server_that_does_not_answer_delays_no_other() -> None:
    world = World()
    world.clickhouse.frozen = True
    world.kafka.missing = [READ]
    await world.until(lambda: READ in world.part.detail)
    assert world.metric(READ) == 1
    world.kafka.missing = []
    await world.until(lambda: world.part.ok)


def test_process_stands_still_without_its_group_a_topic_that_it_reads_in_it_or_one_for_its_results() -> None:
    settings, rights = KafkaSettings(), needs("svc-processors", "svc-writer", grouped_events=False)
    assert standstill(rights["edge"], settings) == standstill(rights["dashboard"], settings) == frozenset()
    assert standstill(rights["processors"], settings) == {
        "Read on topic svc.events",
        "Read on topic svc.issue-deltas",
        *(f"Write on topic svc.{topic}" for topic in ("grouped", "issue-deltas", "issues", "seen")),
        *(f"Write on topic svc.{topic}" for topic in ("issue-activity", "outcomes")),
        "Read on group svc-processors",
    }
    assert "Read on topic svc.projects" not in standstill(rights["writer"], settings)
    assert "Read on topic svc.issue-activity" in standstill(rights["writer"], settings)
    assert standstill(rights["notify"], settings) == {
        "Read on topic svc.issue-activity",
        "Read on topic svc.notifications",
        "Write on topic svc.notifications",
        "Read on group svc-notify",
    }
