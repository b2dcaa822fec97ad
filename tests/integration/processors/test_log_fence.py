"""The log decides who owns a partition: machines that sleep and workers of one name do no harm."""

from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

from tests.eventually import eventually
from tests.integration.conftest import PARTITIONS, Start
from tests.integration.processors import readback
from tests.integration.processors.feed import Feed, produce
from tests.integration.processors.test_exactness import (
    SMALL_TAKES,
    assert_exact,
    backlog,
    processed,
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


async def test_two_workers_of_one_name_oust_each_other_and_count_exactly(
    kafka_bootstrap: str, prefix: str, start: Start
) -> None:
    feed = Feed(PARTITIONS, seed=42)
    await produce(kafka_bootstrap, prefix + "events", backlog(feed, 400, 10))
    first = start("a", SVC_PROCESSORS_BATCH_CHUNKS="2")
    await eventually(lambda: processed(first, 20))
    twin = start("a", SVC_PROCESSORS_BATCH_CHUNKS="2")
    await eventually(lambda: twin.ready() or not (twin.running and first.running))
    await produce(kafka_bootstrap, prefix + "events", backlog(feed, 80, 10))
    if twin.running:
        twin.kill()
    await until_counted(kafka_bootstrap, prefix, feed, first)
    await assert_exact(kafka_bootstrap, prefix, feed)


async def remove_issues(bootstrap: str, prefix: str) -> int:
    """Write a tombstone of each issue, as another tool would; returns their number."""
    known = await readback.issues(bootstrap, prefix + "issues")
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all") as producer:
        for key in known:
            await producer.send_and_wait(
                prefix + "issues", None, key=key.encode(), partition=int(key, 16) % PARTITIONS
            )
    return len(known)


async def removed(bootstrap: str, prefix: str) -> set[bytes]:
    """The keys whose last record is a tombstone."""
    last = {record.key: record.value for record in await readback.read(bootstrap, prefix + "issues")}
    return {key for key, value in last.items() if value is None}


async def test_issues_that_a_stranger_removes_come_back_with_their_counts(
    kafka_bootstrap: str, prefix: str, start: Start
) -> None:
    feed = Feed(PARTITIONS, seed=43)
    owner = start("a", **SMALL_TAKES)
    await produce(kafka_bootstrap, prefix + "events", backlog(feed, 40, 10))
    await until_counted(kafka_bootstrap, prefix, feed, owner)
    await remove_issues(kafka_bootstrap, prefix)
    # The owner notices at its next write, which is in the log by then.
    await produce(kafka_bootstrap, prefix + "events", backlog(feed, 40, 10))
    assert owner.wait() == 1
    await until_counted(kafka_bootstrap, prefix, feed, owner)
    await eventually(owner.ready)
    assert not await removed(kafka_bootstrap, prefix)
    await assert_exact(kafka_bootstrap, prefix, feed)
    # Without later writes a start is enough.
    owner.kill()
    assert await remove_issues(kafka_bootstrap, prefix)
    owner.start()
    await eventually(owner.ready)
    assert not await removed(kafka_bootstrap, prefix)
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
