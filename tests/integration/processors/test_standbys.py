"""Tables kept in reserve: who takes over reads only what it has not read yet, and counts stay exact."""

import random

from tests.eventually import eventually
from tests.integration.conftest import PARTITIONS, Start
from tests.integration.processors.feed import Feed, produce
from tests.integration.processors.process import WorkerProcess
from tests.integration.processors.test_exactness import SMALL_TAKES, assert_exact, backlog, until_counted

READ = "svc_processors_recovery_records"
SEEN = "svc_processors_seen_ids"
STANDBY = {"SVC_PROCESSORS_STANDBYS": "1"}


def holds(worker: WorkerProcess, ids: int) -> bool:
    assert worker.running, worker.log.read_text()[-2000:]
    return worker.ready() and worker.metric(SEEN) >= ids


async def test_a_standby_takes_over_without_reading_the_tables_again(
    kafka_bootstrap: str, prefix: str, start: Start
) -> None:
    feed = Feed(PARTITIONS, seed=31)
    first, second = start("a", **SMALL_TAKES, **STANDBY), start("b", **SMALL_TAKES, **STANDBY)
    await eventually(lambda: first.ready() and second.ready(), timeout=60)
    await produce(kafka_bootstrap, prefix + "events", backlog(feed, 200, 20))
    await until_counted(kafka_bootstrap, prefix, feed, first, second)
    # The last that both have written is read by the other within moments.
    await produce(kafka_bootstrap, prefix + "events", backlog(feed, 8, 20))
    await until_counted(kafka_bootstrap, prefix, feed, first, second)
    first.kill()
    await eventually(lambda: holds(second, len(feed.ids)), timeout=60)
    assert second.metric("svc_processors_rebalances_total") > 1
    entries = second.metric("svc_processors_table_entries")
    assert second.metric(READ) < entries / 2
    await produce(kafka_bootstrap, prefix + "events", backlog(feed, 40, 20))
    await until_counted(kafka_bootstrap, prefix, feed, second)
    await assert_exact(kafka_bootstrap, prefix, feed)


async def test_counts_stay_exact_while_workers_with_standbys_die_and_come_back(
    kafka_bootstrap: str, prefix: str, start: Start
) -> None:
    feed, luck = Feed(PARTITIONS, seed=32), random.Random(32)
    workers = [start(name, **SMALL_TAKES, **STANDBY) for name in ("a", "b")]
    for _ in range(4):
        await produce(kafka_bootstrap, prefix + "events", backlog(feed, 160, 20))
        counted = sum(worker.metric("svc_processors_events_total") for worker in workers)
        await eventually(
            lambda: sum(w.metric("svc_processors_events_total") for w in workers) != counted,  # noqa: B023
            timeout=60,
        )
        one = luck.choice(workers)
        one.kill()
        one.start()
    workers.append(start("c", **SMALL_TAKES, **STANDBY))
    await until_counted(kafka_bootstrap, prefix, feed, *workers)
    await assert_exact(kafka_bootstrap, prefix, feed)
