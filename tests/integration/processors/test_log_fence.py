"""The log decides who owns a partition: machines that sleep and workers of one name do no harm."""

from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.integration.conftest import PARTITIONS, Start
from tests.integration.processors.feed import Feed, produce
from tests.integration.processors.test_exactness import (
    SMALL_TAKES,
    assert_exact,
    backlog,
    until_counted,
)
from tests.long_forms import first_quick


async def test_an_owner_whose_machine_slept_through_a_takeover_publishes_nothing(
    kafka_bootstrap: str, prefix: str, start: Start, tmp_path: Path
) -> None:
    feed = Feed(PARTITIONS, seed=41)
    sleeper = start("a", module="tests.integration.processors.sleeping_worker", **SMALL_TAKES)
    await produce(kafka_bootstrap, prefix + "events", backlog(feed, 80, 10))
    await until_counted(kafka_bootstrap, prefix, feed, sleeper)
    (tmp_path / "sleep").touch()
    await produce(kafka_bootstrap, prefix + "events", backlog(feed, 80, 10))
    await eventually((tmp_path / "asleep").exists)
    other = start("b", **SMALL_TAKES)
    await until_counted(kafka_bootstrap, prefix, feed, other)
    sleeper.thaw()
    assert sleeper.wait() == 1
    assert "another worker wrote at offset" in sleeper.log.read_text()
    await produce(kafka_bootstrap, prefix + "events", backlog(feed, 80, 10))
    await until_counted(kafka_bootstrap, prefix, feed, other)
    await assert_exact(kafka_bootstrap, prefix, feed)


@pytest.mark.parametrize("events", first_quick([10, 0]))
async def test_workers_of_one_name_say_that_it_is_used_twice_and_where_the_other_one_is(
    kafka_bootstrap: str, prefix: str, start: Start, events: int
) -> None:
    feed = Feed(PARTITIONS, seed=44)
    twins = [start("a", SVC_KAFKA_SESSION_SECONDS="30") for _ in range(2)]

    async def is_logged() -> bool:
        # With events the log ends one of them, and its supervisor restarts it.
        for twin in twins:
            if not twin.running:
                twin.start()
        if events:
            await produce(kafka_bootstrap, prefix + "events", backlog(feed, 10, events))
        return "SVC_PROCESSORS_WORKER=a too (" in twins[0].log.read_text()

    await eventually(is_logged, timeout=180)


async def test_a_worker_that_the_group_refuses_before_its_first_assignment_ends(
    kafka_bootstrap: str, prefix: str, start: Start
) -> None:
    refused = start("a", module="tests.integration.processors.fenced_worker")
    assert refused.wait() == 1
    assert "UnknownError" in refused.log.read_text()
