"""`svc rebuild` from ClickHouse: the logs have expired and the tables are lost, and every event still counts once."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest
from aiokafka import TopicPartition
from click.testing import CliRunner, Result
from msgspec.structs import replace

from broker.client import open_consumer, open_producer
from broker.consumer_lag import lags, readers
from broker.errors import CommitFailedError
from cli.rebuild import rebuild
from cli.workspace import Workspace
from rebuild.from_clickhouse import source_ends
from schemas.environment import load
from schemas.ids import uuid7
from schemas.issues import Command, DeltaRecord, IssueRecord, encode_json
from schemas.settings import ProcessorsSettings, WriterSettings
from schemas.times import iso
from storage.client import Client, open_client
from storage.maintain import rebuild_queries
from storage.tables.migrations.migrate import migrate
from tests.eventually import eventually
from tests.integration.conftest import PARTITIONS, Start
from tests.integration.processors import readback
from tests.integration.processors.feed import Feed, produce
from tests.integration.processors.test_exactness import backlog, truncate
from tests.integration.storage.grouped import Writer, ended

SHOWN = (
    "project_id", "fingerprints", "error_type", "message", "culprit", "status", "regressed",
    "first_seen_ms", "last_seen_ms",
    "events", "users", "releases", "environments", "platforms", "hours", "first_release", "last_release", "last_event",
    "assignee", "resolved_in", "ignore_until", "grouping_version", "grouping_rule", "grouping_parts",
    "merged_into", "escalated_ms",
)  # fmt: skip
EXPIRED = ("events", "grouped", "issue-deltas", "issues", "seen", "issue-activity", "outcomes")


class Pipeline:
    """A worker, a writer and their servers."""

    def __init__(self, environ: dict[str, str], prefix: str, folder: Path) -> None:
        self.environ = environ
        self.prefix = prefix
        self.bootstrap = environ["SVC_KAFKA_BOOTSTRAP"]
        self.settings = load(WriterSettings, environ)
        self.client = open_client(environ["SVC_CLICKHOUSE_URL"])
        self.folder = folder

    async def stored(self) -> bool:
        """Whether the writer has read everything."""
        groups = readers(f"{self.prefix}processors", self.settings.writer_group)
        return not await lags(self.settings, groups)

    def ids(self) -> int:
        """Distinct ids in `events`."""
        return int(
            self.client.query("SELECT uniqExact(project_id, id), count() FROM events").result_rows[0][0]
        )

    def rows(self) -> int:
        """Rows of `events`."""
        return int(self.client.query("SELECT count() FROM events").result_rows[0][0])

    async def issues(self) -> dict[str, IssueRecord]:
        """The last state of each issue."""
        return await readback.issues(self.bootstrap, f"{self.prefix}issues")

    async def ask(self, issue: str, project: int, kind: str, data: dict[str, object]) -> None:
        """Write a command."""
        command = Command(str(uuid7()), issue, str(project), kind, "ann", iso(now_ms()), data)
        await self.put(DeltaRecord(command=command), issue)

    async def put(self, delta: DeltaRecord, issue: str) -> None:
        """Write a record of `issue-deltas`."""
        async with open_producer(self.settings) as producer:
            await producer.send_and_wait(
                f"{self.prefix}issue-deltas", encode_json(delta), partition=int(issue, 16) % PARTITIONS
            )

    async def rebuild(self, *arguments: str) -> Result:
        """Run the command."""
        return await asyncio.to_thread(
            CliRunner().invoke, rebuild, [*arguments, "--yes"], obj=Workspace(self.folder, self.environ)
        )

    async def interrupt(self) -> None:
        """As if the processors had been killed before they committed anything."""
        await self._commit("processors", "events", lambda _: 0)

    async def forget(self) -> None:
        """The writer's position is lost: its group is at the end, and knows no source."""
        await self._commit("writer", "grouped", lambda end: end)

    async def _commit(self, group: str, topic: str, at: Callable[[int], int]) -> None:
        tps = [TopicPartition(f"{self.prefix}{topic}", p) for p in range(PARTITIONS)]
        options = {"group_id": f"{self.prefix}{group}", "enable_auto_commit": False}
        async with open_consumer(self.settings, **options) as consumer:
            consumer.assign(tps)
            ends = await consumer.end_offsets(tps)

            async def committed() -> bool:
                # A killed member is one until its session has expired.
                with suppress(CommitFailedError):
                    await consumer.commit({tp: at(end) for tp, end in ends.items()})
                    return True
                return False

            await eventually(committed, timeout=60)

    async def expire(self, *topics: str) -> None:
        """Delete all records of topics."""
        for topic in topics:
            await truncate(self.bootstrap, self.prefix + topic)


@pytest.fixture
async def pipeline(
    kafka_bootstrap: str, clickhouse_database_url: str, prefix: str, tmp_path: Path
) -> AsyncIterator[Pipeline]:
    environ = {
        "SVC_KAFKA_BOOTSTRAP": kafka_bootstrap,
        "SVC_CLICKHOUSE_URL": clickhouse_database_url,
        "SVC_TOPIC_PREFIX": prefix,
        "SVC_PROCESSORS_APP": f"{prefix}processors",
        "SVC_WRITER_GROUP": f"{prefix}writer",
        "SVC_KAFKA_SESSION_SECONDS": "3",
        "SVC_TOPIC_PARTITIONS": str(PARTITIONS),
    }
    await asyncio.to_thread(migrate, clickhouse_database_url)
    made = Pipeline(environ, prefix, tmp_path)
    yield made
    made.client.close()


def now_ms() -> int:
    return time.time_ns() // 1_000_000


async def states(pipeline: Pipeline, *requests: tuple[str, str, dict[str, object]]) -> None:
    """Ask for changes, one after the other, and wait for their activities to be stored."""
    for issue, kind, data in requests:
        project = int((await pipeline.issues())[issue].project_id)
        await pipeline.ask(issue, project, kind, data)


async def counts_are_exact(pipeline: Pipeline, feed: Feed) -> None:
    """Each id is stored once, and each issue counts the rows with its fingerprints."""
    assert pipeline.ids() == pipeline.rows() == len(feed.ids)
    rows = pipeline.client.query(
        "SELECT project_id, lower(leftPad(hex(fingerprint), 16, '0')), count() FROM events GROUP BY 1, 2"
    ).result_rows
    stored = {(str(project), fingerprint): count for project, fingerprint, count in rows}
    for issue in (await pipeline.issues()).values():
        parts = issue.fingerprints if issue.merged_into is None else issue.fingerprints[:1]
        assert issue.events == sum(stored[issue.project_id, one] for one in parts), issue.id
    shown = [issue for issue in (await pipeline.issues()).values() if issue.merged_into is None]
    assert sum(issue.events for issue in shown) == len(feed.ids)


async def test_tables_are_built_from_clickhouse_when_the_logs_have_expired(
    pipeline: Pipeline, start: Start
) -> None:
    feed = Feed(PARTITIONS, seed=21, kinds=12, now_ms=now_ms() - 10_000_000)
    topic = f"{pipeline.prefix}events"
    await produce(pipeline.bootstrap, topic, backlog(feed, 60, 20))
    worker, writer = start(), Writer(pipeline.environ, pipeline.folder / "writer.log")
    with ended(writer):
        await eventually(lambda: pipeline.rows() == len(feed.ids), timeout=120)
        await eventually(pipeline.stored)
        of_one = [one.id for one in (await pipeline.issues()).values() if one.project_id == "7"]
        resolved, fixed, ignored, assigned, whole, part, *_ = sorted(of_one)
        await states(
            pipeline,
            (resolved, "update", {"status": "resolved"}),
            (fixed, "update", {"resolvedIn": "shop@9.0.0+1"}),
            (ignored, "update", {"ignoreUntil": {"events": 100_000}}),
            (assigned, "update", {"assignee": "ann"}),
            (whole, "merge", {"issues": [part]}),
        )

        async def merged() -> bool:
            found = await pipeline.issues()
            return len(found[whole].fingerprints) == 2 and found[assigned].assignee == "ann"

        await eventually(merged)
        assert worker.stop() == 0
        await eventually(pipeline.stored)
        before = await pipeline.issues()
        await pipeline.expire(*EXPIRED)
        done = await pipeline.rebuild("all")
        assert done.exit_code == 0, done.output
        assert "written from ClickHouse" in done.output
        after = await pipeline.issues()
        assert {key: seen_of(one) for key, one in after.items()} == {
            k: seen_of(one) for k, one in before.items()
        }

        await produce(pipeline.bootstrap, topic, backlog(feed, 60, 20))
        worker.start()
        await eventually(lambda: pipeline.rows() == len(feed.ids), timeout=120)
        await eventually(pipeline.stored)
        await counts_are_exact(pipeline, feed)
        found = await pipeline.issues()
        assert (found[resolved].status, found[resolved].regressed) == ("open", True)
        assert (found[fixed].status, found[ignored].status) == ("resolved", "ignored")
        assert set(found[whole].fingerprints) == {*before[whole].fingerprints}
        assert found[part].merged_into == whole
        assert worker.metric("svc_processors_events_duplicate_total") > 0


def seen_of(issue: IssueRecord) -> dict[str, object]:
    """An issue as readers see it."""
    return {name: getattr(issue, name) for name in SHOWN}


async def test_erased_events_still_count_and_their_ids_are_known(
    pipeline: Pipeline, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = Feed(PARTITIONS, seed=23, kinds=3, now_ms=now_ms() - 10_000_000)
    await produce(pipeline.bootstrap, f"{pipeline.prefix}events", backlog(feed, 8, 20))
    worker, writer = start(), Writer(pipeline.environ, pipeline.folder / "writer.log")
    with ended(writer):
        await eventually(lambda: pipeline.rows() == len(feed.ids), timeout=120)
        await eventually(pipeline.stored)
    assert worker.stop() == 0
    one = next(one for one in rebuild_queries.counted(pipeline.client) if one.project == 7)
    ended_before, under_way = uuid4(), uuid4()
    pipeline.client.command(
        f"INSERT INTO erased_counts VALUES (7, today(), {one.fingerprint}, '{ended_before}', 3)"
    )
    # Of the three that the other one has listed, two are gone.
    there = int(pipeline.client.query("SELECT any(id) FROM events WHERE project_id = 7").result_rows[0][0])
    pipeline.client.command(
        "INSERT INTO erasing (erasure, project_id, id, fingerprint, ts, received) VALUES "
        + ", ".join(f"('{under_way}', 7, {i}, {one.fingerprint}, now(), now())" for i in (1, 2, there))
    )
    pipeline.client.command(
        "INSERT INTO erasures (project_id, id, kind, stage, version) VALUES "
        f"(7, '{ended_before}', 'user', 'done', 1), (7, '{under_way}', 'user', 'deleting', 1)"
    )
    pipeline.client.command("INSERT INTO erased_events VALUES (7, 12345, today())")
    again = next(
        o
        for o in rebuild_queries.counted(pipeline.client)
        if (o.project, o.fingerprint) == (7, one.fingerprint)
    )
    assert again.events == one.events + 3 + 2
    found = list(rebuild_queries.ids(pipeline.client, 0))
    assert {(project, identity) for project, identity, _ in found} == feed.ids | {
        (7, (12345).to_bytes(16, "big"))
    }
    assert len(found) == len(feed.ids) + 1

    with_text = next(row for row in rebuild_queries.shown(pipeline.client) if row.message)
    newest = int.from_bytes(with_text.last_event, "big")
    pipeline.client.command(
        f"INSERT INTO erased_events VALUES ({with_text.project}, toUInt128('{newest}'), today())"
    )
    without = next(row for row in rebuild_queries.shown(pipeline.client) if row.issue == with_text.issue)
    assert without == replace(with_text, message="", last_event=bytes(16))

    counted = rebuild_queries.counted

    def and_delete(client: Client) -> Iterator[rebuild_queries.StoredCounts]:
        yield from counted(client)
        client.command(f"DELETE FROM events WHERE project_id = 7 AND id = toUInt128('{there}')")

    monkeypatch.setattr(rebuild_queries, "counted", and_delete)
    refused = await pipeline.rebuild("issues", "--from", "clickhouse")
    assert (refused.exit_code, "an erasure deletes events now" in refused.output) == (1, True)
    done = await pipeline.rebuild("issues", "--from", "clickhouse")
    assert done.exit_code == 0, done.output


async def work_off(pipeline: Pipeline, start: Start, seed: int) -> Feed:
    """Some events, which all are stored when the worker and the writer have ended."""
    feed = Feed(PARTITIONS, seed=seed, now_ms=now_ms() - 10_000_000)
    await produce(pipeline.bootstrap, f"{pipeline.prefix}events", backlog(feed, 8, 20))
    worker = start()
    with ended(Writer(pipeline.environ, pipeline.folder / "writer.log")):
        await eventually(lambda: pipeline.rows() == len(feed.ids), timeout=120)
        assert worker.stop() == 0
        await eventually(pipeline.stored)
    return feed


def unread(feed: Feed) -> list[tuple[int, bytes]]:
    """Chunks of new events alone."""
    return [(p, feed.chunk(p, 20, repeats=0)) for p in range(PARTITIONS)]


@pytest.mark.slow
@pytest.mark.parametrize("killed", [False, True])
async def test_issues_are_built_though_the_position_of_the_writer_is_unknown(
    pipeline: Pipeline, start: Start, killed: bool
) -> None:
    feed = await work_off(pipeline, start, seed=27)
    settings = load(ProcessorsSettings, pipeline.environ)

    async def ends() -> dict[int, int]:
        async with open_consumer(settings) as consumer:
            return await source_ends(settings, consumer)

    known = await ends()
    await pipeline.expire("grouped")
    await pipeline.forget()
    if killed:
        await pipeline.interrupt()
    # Not read by anybody: these must not count as stored.
    await produce(pipeline.bootstrap, f"{pipeline.prefix}events", unread(feed))
    assert await ends() == known
    done = await pipeline.rebuild("issues", "--from", "clickhouse")
    assert done.exit_code == 0, done.output
    worker = start()
    with ended(Writer(pipeline.environ, pipeline.folder / "writer.log")):
        await eventually(lambda: pipeline.rows() == len(feed.ids), timeout=120)
        assert worker.stop() == 0
        await eventually(pipeline.stored)
    await counts_are_exact(pipeline, feed)


@pytest.mark.slow
async def test_all_tables_are_built_before_the_writer_has_read_the_issues_that_were_just_written(
    pipeline: Pipeline, start: Start
) -> None:
    await work_off(pipeline, start, seed=25)
    done = await pipeline.rebuild("all", "--from", "clickhouse")
    assert done.exit_code == 0, done.output


@pytest.mark.slow
async def test_after_a_batch_that_was_interrupted_ids_are_not_built_without_the_counts(
    pipeline: Pipeline, start: Start
) -> None:
    await work_off(pipeline, start, seed=26)
    # Of a topic that says how the last events were decided nothing is left.
    await pipeline.expire("grouped")
    done = await pipeline.rebuild("seen")
    assert (done.exit_code, "written from ClickHouse" in done.output) == (0, True), done.output
    await pipeline.interrupt()
    refused = await pipeline.rebuild("seen")
    assert (refused.exit_code, "in the middle of a batch" in refused.output) == (1, True), refused.output
    done = await pipeline.rebuild("all")
    assert (done.exit_code, done.output.count("written from ClickHouse")) == (0, 2), done.output


async def test_nothing_is_emptied_while_the_writer_has_something_left(
    pipeline: Pipeline, start: Start
) -> None:
    feed = Feed(PARTITIONS, seed=22, now_ms=now_ms() - 10_000_000)
    await produce(pipeline.bootstrap, f"{pipeline.prefix}events", backlog(feed, 8, 20))
    worker = start()
    await eventually(lambda: worker.metric("svc_processors_events_new_total") == len(feed.ids))
    assert worker.stop() == 0
    before = await pipeline.issues()
    refused = await pipeline.rebuild("issues", "--from", "clickhouse")
    assert (refused.exit_code, "behind on" in refused.output) == (1, True)
    assert await pipeline.issues() == before
